"""The rules of power loss, one small function each, so that a test can sabotage one at a time.

Each docstring ends in where the rule comes from. *Measured*: no crash image of ext4, xfs or btrfs
(Linux 6.18, default options) contradicted it, and a model without it or with a stronger one did not
fit. *Cited*: a document says so. *Assumed*: neither; the weaker choice was taken.

J: names in the order of one journal (ext4, xfs). X: ext4. F: xfs. B: entries on their own (btrfs,
posix). A rule says what *is* promised; where a file system promises nothing, the rule's function
says that nothing is, and its sabotage is the promise that people believe in.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from crashlab.content import BLOCK_BYTES

SECTOR_BYTES = 512


@dataclass(frozen=True, slots=True)
class BlockVersion:
    """One version of one block that may be on disk.

    ``event`` is the position of the event that made it among those of the file, -1 for the durable
    one; ``op`` its op. ``absent``: never written, so that it reads as zeros. ``mark`` tells versions
    of one op apart: ``c5`` cut by op 5, ``t3x2`` the first 3 sectors, the rest from op 2.
    """

    event: int
    op: int
    data: bytes
    absent: bool = False
    mark: str = ""

    def cut(self, inside: int, by: int) -> BlockVersion:
        """This version with zeros from byte ``inside`` on."""
        return replace(self, data=self.data[:inside].ljust(BLOCK_BYTES, b"\0"), mark=f"{self.mark}c{by}")


@dataclass(slots=True)
class Seen:
    """What a journal has taken in so far: per inode or directory the last place in the chain that matters."""

    touched: dict[int, int] = field(default_factory=dict)
    resized: dict[int, int] = field(default_factory=dict)
    grown: dict[int, int] = field(default_factory=dict)
    entries: dict[int, int] = field(default_factory=dict)


# --- J: one journal -----------------------------------------------------------------------------


def j1_prefixes(floor: int, issued: int) -> range:
    """J1: a crash shows a prefix of all metadata changes, not shorter than what is forced. Measured."""
    return range(floor, issued + 1)


def j2_growth_shows(before: int, cut: int) -> bool:
    """J2: a size that a write made shows only with all metadata changes issued before it.

    Not the other way round: a file may have size 0 whatever came after it. Measured.
    """
    return before <= cut


def j3_sizes(old: int, end: int) -> list[int]:
    """J3: a growing write shows its end or any multiple of 4096 between the old size and it. Measured."""
    first = old // BLOCK_BYTES * BLOCK_BYTES + BLOCK_BYTES
    return [*range(first, end, BLOCK_BYTES), end]


def j4_fsync(seen: Seen, inode: int) -> int:
    """J4: fsync forces every change that touches the inode, and all issued before its last growth.

    By J1 everything before those too; but not everything: that was refuted on ext4 and xfs. Measured.
    """
    return max(seen.touched.get(inode, 0), seen.grown.get(inode, 0))


def j4_fdatasync(seen: Seen, inode: int) -> int:
    """J4: fdatasync leaves out renames, links and attributes after the last change of size.

    Measured on ext4; on xfs the loss was never seen, and is assumed.
    """
    return max(seen.resized.get(inode, 0), seen.grown.get(inode, 0))


def j5_fsync_directory(seen: Seen, inode: int) -> int:
    """J5: fsync of a directory forces every change of its entries, and what touches itself. Measured."""
    return max(seen.entries.get(inode, 0), seen.touched.get(inode, 0))


def j9_as_fsync(*, data_only: bool) -> bool:  # noqa: ARG001 - the twin P1 asks for it
    """J9: fdatasync of a directory does what fsync of it does. Measured: 0 of 4,615 images lost an entry behind it.

    Cited for the cause: ``ext4_fsync_journal`` forces a full commit for what is no regular file, and
    ``xfs_dir_fsync`` forces the log, whichever of the two was called.
    """
    return True


def posix_data_only(*, data_only: bool) -> bool:
    """Posix: fdatasync of a directory promises no entries. Cited: fdatasync(2) speaks of reading data back only."""
    return not data_only


def j7_pages(blocks: range, size: int) -> tuple[range, int]:
    """J7: a write with ``O_SYNC`` or ``O_DSYNC`` forces the pages that it wrote, and the size as far as they reach.

    Earlier bytes of other pages, and the size that they made, stay as they were. Metadata is forced as by
    fsync, or fdatasync. Measured. Cited for the cause: the kernel's ``generic_write_sync`` syncs the range
    of the write, where open(2) speaks of an fsync.
    """
    return blocks, min(size, blocks.stop * BLOCK_BYTES)


def j8_all(old: int, block: int) -> bool:  # noqa: ARG001 - the twin F5 asks for them
    """J8: sync and syncfs force everything. Measured on ext4 and btrfs; on xfs and posix see F5."""
    return True


def j6_rename_forces(position: int) -> int:  # noqa: ARG001 - a sabotaged twin returns it
    """J6: a rename is not durable when it returns. Measured."""
    return 0


# --- X and F: what a size says about blocks and what a truncation leaves -------------------------


def x1_shown(versions: list[BlockVersion], maker: int | None, *, last: bool) -> list[BlockVersion]:  # noqa: ARG001 - the twin F1 asks for it
    """X1: a size does not imply its data: full size with zeros is legal, also after a rename. Measured.

    New blocks are allocated unwritten, and the commit does not wait for their data. Cited: ext4's
    ``dioread_nolock``, the default since Linux 5.6.
    """
    return versions


def x1_shown_with_lock(versions: list[BlockVersion], maker: int | None, *, last: bool) -> list[BlockVersion]:  # noqa: ARG001 - the twin F1 asks for it
    """X1 under ``dioread_lock``: no block is shown unwritten; a zero tail of the old last block stays. Measured.

    A block that the write which made the size had not reached yet is a hole, and stays one.
    """
    if maker is None or not any(0 <= version.event <= maker and not version.absent for version in versions):
        return versions
    return [version for version in versions if not version.absent]


def f1_last_block(versions: list[BlockVersion], maker: int | None, *, last: bool) -> list[BlockVersion]:
    """F1: a size that a write made implies a version of its last block that covers it. Measured.

    Lower new blocks are free: zeros in front are seen.
    """
    return [version for version in versions if version.event >= maker] if last and maker is not None else versions


def x2_drops_size_zero(kind: str) -> bool:
    """X2: a rename over an existing name implies some size of the new file: never size 0. Measured.

    X3: a close after a truncation to 0 promises nothing. Measured. (``kind`` is ``over`` or ``size``.)
    """
    return kind == "over"


def f2_drops_nothing(kind: str) -> bool:  # noqa: ARG001 - the twin X2 asks for it
    """F2, and ext4 with ``noauto_da_alloc``: rename and truncation imply nothing. Measured."""
    return False


def x4_cut(versions: list[BlockVersion], newest: BlockVersion, inside: int) -> list[BlockVersion]:
    """X4: after a truncation that shows, bytes beyond it are zero. Measured."""
    return [*(version.cut(inside, newest.op) for version in versions[:-1]), newest]


def x5_stays_unwritten(block: int, size: int) -> bool:
    """X5: a block that was new when its write failed reads as zeros though its page is written again and synced.

    ``size`` is the durable size before. Measured: the second write reaches the disk, the block stays marked as
    unwritten, fsync returns 0. Truncating it away first mends it; so does the option ``dioread_lock``.
    """
    return block >= -(-size // BLOCK_BYTES)


def rewriting_mends(block: int, size: int) -> bool:  # noqa: ARG001 - the twin X5 asks for them
    """A page that is written again after its write failed, and synced, is durable. Measured on xfs and btrfs."""
    return False


def f3_cut(versions: list[BlockVersion], newest: BlockVersion, inside: int) -> list[BlockVersion]:
    """F3: the zeroed tail is written on its own, before or after the truncation shows. Measured."""
    return [*versions, *x4_cut(versions, newest, inside)]


def f4_filled(old: int, first: int) -> int | None:
    """F4: a write that begins in a block behind that of the old end also writes this block, zeros behind the old end.

    So the end of that block is a size that comes with its bytes (F1). Gives the block, where there is one. Measured.
    """
    last = old // BLOCK_BYTES
    return last if old % BLOCK_BYTES and first > last else None


def f5_new_only(old: int, block: int) -> bool:
    """F5: sync and syncfs force the size, its last block and blocks that are new, and not those that were there.

    Bytes that were written into a block within the old size may be lost until some file is fsynced.
    Measured: where a stranger's fsync came between an overwrite and sync, the overwrite was lost behind it.
    Cited for the cause: ``xfs_fs_sync_fs`` forces the log and nothing else, so the disk is flushed only
    where something is left in the log. Assumed: a block that was allocated and never written was there.
    """
    return block * BLOCK_BYTES >= old


def fills_nothing(old: int, first: int) -> int | None:  # noqa: ARG001 - the twin F4 asks for it
    """Elsewhere the end of that block may show as a size without this rule, or was not seen."""
    return None


def torn(version: BlockVersion, older: list[BlockVersion]) -> list[BlockVersion]:
    """``sector_bytes=512``: an overwrite of an allocated block may stop after some sectors. Measured."""
    return [
        BlockVersion(
            under.event, under.op, version.data[:at] + under.data[at:], mark=f"t{at // SECTOR_BYTES}x{version.op}"
        )
        for under in older
        if not under.absent and not under.mark.startswith("t")
        for at in range(SECTOR_BYTES, BLOCK_BYTES, SECTOR_BYTES)
    ]


# --- B: entries on their own ---------------------------------------------------------------------


def b1_first_version(covered: int) -> int:
    """B1: an entry shows any version from the last fsync of its directory, or sync, that covers it. Measured."""
    return covered


def b2_names_forced(*, data_only: bool, moved: bool) -> bool:
    """B2: on btrfs fsync of a file forces the names that mean it; B6: fdatasync only if it never moved. Measured."""
    return not (data_only and moved)


def posix_names_forced(*, data_only: bool, moved: bool) -> bool:  # noqa: ARG001 - the twin B2 asks for it
    """Posix: fsync of a file promises no name. Cited: fsync(2)."""
    return False


def b3_may_vanish(*, source_synced: bool, link_swapped: bool) -> bool:
    """B3: an entry replaced by a rename whose source was not fsynced before may be missing. Measured.

    Not where a symbolic link is swapped: a rename within one directory over a link that never had a name
    in another one, nor left one to a file. Measured: 0 of 20,407 images; without either condition it was seen.
    """
    return not source_synced and not link_swapped


def posix_may_vanish(*, source_synced: bool, link_swapped: bool) -> bool:  # noqa: ARG001 - the twin B3 asks for it
    """Posix: the same for links that are swapped. Assumed."""
    return not source_synced


def b4_is_kept(required: frozenset[int], named: frozenset[int]) -> bool:
    """B4: what is named in the running system, and was once durably, has at least one name. Measured."""
    return required <= named


def b7_whole_file(blocks: range, size: int) -> tuple[range, int]:
    """B7: on btrfs a write with ``O_SYNC`` or ``O_DSYNC`` is as fsync, or fdatasync, of its file. Measured."""
    return range(max(blocks.stop, -(-size // BLOCK_BYTES))), size


def b5_zeros(absent: BlockVersion, versions: list[BlockVersion]) -> list[BlockVersion]:
    """B5: each block shows any version since its file was last forced, or zeros where there was none.

    A size does not imply its data, and old content cut to a new size was seen. Measured.
    """
    return [*versions, absent]
