// Package private refuses files with secrets that others may read.
package private

import (
	"fmt"
	"io/fs"
	"os"
	"runtime"
)

// others are the rights of those who are neither the owner nor of the group.
const others fs.FileMode = 0o007

// Check says what is wrong with the rights of a file that is there, and the command that mends
// it. Windows keeps rights in another way.
func Check(path string) error {
	info, err := os.Stat(path)
	if err != nil || runtime.GOOS == "windows" || info.Mode().Perm()&others == 0 {
		return nil
	}
	return fmt.Errorf("%s can be read by other users of this machine (mode %04o): run chmod 600 '%s'", path, info.Mode().Perm(), path)
}
