// Package private rejects files with secrets that other users can read.
package private

import (
	"fmt"
	"io/fs"
	"os"
	"runtime"
)

// others are the permissions of users other than the owner and the group.
const others fs.FileMode = 0o007

// Check returns an error if other users can access an existing file. The error has the command that corrects it. Check does
// nothing on Windows, whose permissions differ.
func Check(path string) error {
	info, err := os.Stat(path)
	if err != nil || runtime.GOOS == "windows" || info.Mode().Perm()&others == 0 {
		return nil
	}
	return fmt.Errorf("%s can be read by other users of this machine (mode %04o): run chmod 600 '%s'", path, info.Mode().Perm(), path)
}
