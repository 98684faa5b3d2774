//go:build unix

package filestore_test

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"

	"github.com/seed1158cd35/weir/fleet/filestore"
)

func init() { modes["no room"] = noRoom }

// noRoom reaches the system's limit for the size of files, and continues after the limit is removed.
func noRoom(s *filestore.Store, path string) {
	signal.Ignore(syscall.SIGXFSZ)
	var r syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &r); err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	was := r.Cur
	r.Cur = 128 << 10
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &r); err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	n, err := fill(s, 0, 100_000)
	fmt.Println("took", n)
	if !errors.Is(err, filestore.ErrFull) {
		fmt.Println("error", err)
		os.Exit(1)
	}
	r.Cur = was
	if err = syscall.Setrlimit(syscall.RLIMIT_FSIZE, &r); err == nil {
		n, err = fill(s, 200_000, 200)
		fmt.Println("took", n)
	}
	err = errors.Join(err, s.Close())
	fmt.Println("error", "none", err)
	os.Exit(0)
}

func TestADiskWithoutRoomIsAnError(t *testing.T) {
	path := file(t)
	o := run(t, path, 0, nil, "MODE=no room")
	if !strings.HasPrefix(o.err, "none <nil>") || o.took < 200 {
		t.Fatalf("the child said %+v", o)
	}
	if got := 1_000_000 - left(t, open(t, path, quick), slow); got != o.took {
		t.Errorf("the file counts %d, %d were granted", got, o.took)
	}
}
