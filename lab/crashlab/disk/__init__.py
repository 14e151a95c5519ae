"""Real file systems on a disk of our own: ext4, xfs and btrfs judge the model, and meet real recoveries."""
