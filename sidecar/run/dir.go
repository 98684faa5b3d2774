package run

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

const (
	dirPrefix   = "run-"
	adminSocket = "admin.sock"
)

// Base returns the parent directory of the directories of the user's runs.
func Base(env func(string) (string, bool)) string {
	if dir, ok := env("XDG_RUNTIME_DIR"); ok && filepath.IsAbs(dir) {
		return filepath.Join(dir, "weir")
	}
	return filepath.Join(os.TempDir(), "weir-run-"+strconv.Itoa(os.Getuid()))
}

// makeDir creates the directory of this run, and removes the directories of runs that ended without cleanup.
func makeDir(env func(string) (string, bool)) (string, error) {
	base := Base(env)
	if err := os.MkdirAll(filepath.Dir(base), 0o700); err != nil {
		return "", err
	}
	if err := os.Mkdir(base, 0o700); err != nil && !os.IsExist(err) {
		return "", err
	}
	if err := checkPrivate(base); err != nil {
		return "", err
	}
	removeDead(base)
	dir := filepath.Join(base, dirPrefix+strconv.Itoa(os.Getpid()))
	if err := os.RemoveAll(dir); err != nil { // left by an earlier process with this ID
		return "", err
	}
	return dir, os.Mkdir(dir, 0o700)
}

// removeDead removes the directories of processes that have ended.
func removeDead(base string) {
	entries, _ := os.ReadDir(base) // ignores unreadable entries
	for _, e := range entries {
		number, ok := strings.CutPrefix(e.Name(), dirPrefix)
		if pid, err := strconv.Atoi(number); ok && err == nil && !alive(pid) {
			_ = os.RemoveAll(filepath.Join(base, e.Name()))
		}
	}
}

// Admins returns the admin sockets of the runs of the user.
func Admins(env func(string) (string, bool)) []string {
	if dir, ok := env(Variable); ok && dir != "" {
		return []string{filepath.Join(dir, adminSocket)}
	}
	base := Base(env)
	if checkPrivate(base) != nil {
		return nil
	}
	all, _ := filepath.Glob(filepath.Join(base, dirPrefix+"*", adminSocket)) // the pattern is valid
	return all
}

func notPrivate(path string) error {
	return fmt.Errorf("%s must be a directory that belongs to you and that no other user can open: remove it", path)
}
