package memberfile

import (
	"fmt"
	"syscall"
)

// local are file systems of one machine, by their magic numbers (statfs(2)). Several machines may share other file systems,
// such as NFS, SMB, FUSE, 9P, Ceph, Lustre or GFS2, or these may release locks early.
var local = map[uint32]string{
	0xEF53: "ext4", 0x58465342: "xfs", 0x9123683E: "btrfs", 0x01021994: "tmpfs", 0x858458F6: "ramfs", 0x794C7630: "overlay",
	0xF2F52010: "f2fs", 0x2FC12FC1: "zfs", 0xCA451A4E: "bcachefs", 0x3153464A: "jfs", 0x52654973: "reiserfs", 0x3434: "nilfs",
}

// checkLocal fails if the directory may be shared with other machines.
func checkLocal(path string) error {
	var s syscall.Statfs_t
	if err := syscall.Statfs(path, &s); err != nil {
		return err
	}
	if _, ok := local[uint32(s.Type)]; !ok {
		return fmt.Errorf("%w: %s is on a file system of type %#x, which may be shared with other machines", ErrUnsupported, path, uint32(s.Type))
	}
	return nil
}
