package memberfile

import (
	"errors"
	"testing"
)

// Locks on file systems that other machines may share prove nothing. The table lacks NFS, SMB, CIFS, FUSE, 9P, Ceph, Lustre,
// GFS2, OCFS2, AFS, GPFS and vboxsf.
func TestFileSystemsOfSeveralMachinesAreNotTrusted(t *testing.T) {
	for _, magic := range []uint32{0x6969, 0xFE534D42, 0xFF534D42, 0x517B, 0x65735546, 0x01021997, 0x00C36400, 0x0BD00BD0, 0x01161970, 0x7461636F, 0x5346414F, 0x47504653, 0x786F4256} {
		if name, ok := local[magic]; ok {
			t.Errorf("%#x is trusted as %s", magic, name)
		}
	}
	if err := checkLocal("/proc/self"); !errors.Is(err, ErrUnsupported) {
		t.Errorf("proc: %v, want ErrUnsupported", err)
	}
}
