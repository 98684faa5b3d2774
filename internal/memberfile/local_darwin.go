package memberfile

import (
	"fmt"
	"syscall"
)

// mntLocal is MNT_LOCAL of statfs(2): the file system is on this machine.
const mntLocal = 0x1000

// checkLocal fails if the directory may be shared with other machines.
func checkLocal(path string) error {
	var s syscall.Statfs_t
	if err := syscall.Statfs(path, &s); err != nil {
		return err
	}
	if s.Flags&mntLocal == 0 {
		return fmt.Errorf("%w: %s is on a network file system", ErrUnsupported, path)
	}
	return nil
}
