"""The recorder of any program: what strace tells of its system calls, told as the ops of a trace."""
