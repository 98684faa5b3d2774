// Package memberfile tells the processes of one machine which of them have ended. Each holds an exclusive lock on a file
// of its own in a directory that they share. The operating system releases the lock when the process ends, however it
// ends, and never before. So a process that gets the lock of another's file knows that the other is dead. A process id,
// a boot id or a heartbeat proves nothing of the kind: containers share boot ids, process ids repeat, and a process that
// is silent may be frozen.
//
// Locks are trusted on file systems of this machine only.
package memberfile

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// A Member is what a file contains: who holds the lock, and the groups in which it holds parts.
type Member struct {
	Used   []string `json:"used"` // groups in which it may have used its part without having reported that
	Boot   string   `json:"boot"` // of the machine; "" if that is not known
	ID     string   `json:"id"`
	Groups []string `json:"groups"`
}

// HasUsed reports whether a member that has ended may have used its part of a group without having reported that. What
// the file says is current only if the machine has not been restarted since: only then was nothing lost that was written.
func (m *Member) HasUsed(group string) bool {
	return m.Boot == "" || m.Boot != bootID() || slices.Contains(m.Used, group)
}

// bootID identifies the run of this machine's kernel, "" if it is not known.
var bootID = sync.OnceValue(func() string {
	id, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(id))
})

// ErrUnsupported means that locks prove nothing here: the system has none, or the directory is not on a file system of
// this machine, or not this user's alone.
var ErrUnsupported = errors.New("member files are not supported here")

// A Dir is a directory of member files. It is safe for concurrent use.
type Dir struct{ path string }

const (
	ending  = ".member"
	making  = ".new" // a file whose owner has not locked it yet
	longest = 1 << 20
	// Files of an owner that died while it made them are removed after this time.
	makingAtMost = time.Minute
)

// Open makes the directory if it is missing, and checks that it belongs to this user alone and is on a file system of
// this machine.
func Open(path string) (*Dir, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, err
	}
	for _, p := range []string{filepath.Dir(path), path} {
		if err := checkOwner(p); err != nil {
			return nil, err
		}
	}
	if err := checkLocal(path); err != nil {
		return nil, err
	}
	return &Dir{path}, nil
}

// A File is the file of one member, locked by this process until Close or Remove. It is safe for concurrent use.
type File struct {
	Member
	path string
	mu   sync.Mutex
	file *os.File // nil once it is closed
}

// Create makes the file of this process. Others see it only when it is locked.
func (d *Dir) Create(m Member) (*File, error) {
	sum := sha256.Sum256([]byte(m.ID)) // an ID may be any text
	path := filepath.Join(d.path, hex.EncodeToString(sum[:12])+ending)
	if err := os.MkdirAll(d.path, 0o700); err != nil { // its last file may have been removed since, and it with that
		return nil, err
	}
	f, err := os.OpenFile(path+making, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	m.Boot = bootID()
	own := &File{path: path, file: f}
	if err = lock(f); err == nil {
		if err = own.Update(func(old *Member) { *old = m }); err == nil {
			err = os.Rename(path+making, path)
		}
	}
	if err != nil {
		f.Close()
		os.Remove(path + making)
		return nil, fmt.Errorf("member file %s: %w", path, err)
	}
	return own, nil
}

// Update changes what the file says of its member. If that fails the file is removed: others must not believe what it
// says.
func (f *File) Update(change func(*Member)) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.file == nil {
		return os.ErrClosed
	}
	change(&f.Member)
	text, err := json.Marshal(f.Member)
	if err == nil {
		_, err = f.file.WriteAt(text, 0)
	}
	if err == nil {
		err = f.file.Truncate(int64(len(text)))
	}
	if err != nil {
		f.endLocked(true)
	}
	return err
}

// Dead locks and returns the files of members that have ended, atMost of them. all is how many files there are. The
// caller closes or removes each.
func (d *Dir) Dead(atMost int) (dead []*File, all int, err error) {
	entries, err := os.ReadDir(d.path)
	if err != nil && !errors.Is(err, os.ErrNotExist) { // the last file took the directory along
		return nil, 0, err
	}
	for _, e := range entries {
		path := filepath.Join(d.path, e.Name())
		switch {
		case strings.HasSuffix(e.Name(), making):
			if info, err := e.Info(); err == nil && time.Since(info.ModTime()) > makingAtMost {
				os.Remove(path)
			}
		case strings.HasSuffix(e.Name(), ending):
			all++
			if len(dead) < atMost {
				if f := take(path); f != nil {
					dead = append(dead, f)
				}
			}
		}
	}
	return dead, all, nil
}

// take locks the file of a dead member. It returns nil if the member lives, another process was faster, or the file does
// not name a member; then it is removed.
func take(path string) *File {
	f, err := os.OpenFile(path, os.O_RDWR|noFollow, 0)
	if err != nil {
		return nil
	}
	if lock(f) != nil || !linked(f, path) {
		f.Close()
		return nil
	}
	dead := &File{path: path, file: f}
	if json.NewDecoder(io.LimitReader(f, longest)).Decode(&dead.Member) != nil || dead.ID == "" {
		dead.Remove()
		return nil
	}
	return dead
}

// linked reports whether the file is still the one at the path: another process may have removed it between the opening
// and the lock.
func linked(f *os.File, path string) bool {
	a, err := f.Stat()
	if err != nil {
		return false
	}
	b, err := os.Lstat(path)
	return err == nil && os.SameFile(a, b)
}

// Close ends the lock and leaves the file: another process finds its member dead.
func (f *File) Close() { f.end(false) }

// Remove removes the file and ends the lock: its member's end is known.
func (f *File) Remove() { f.end(true) }

func (f *File) end(remove bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.endLocked(remove)
}

func (f *File) endLocked(remove bool) {
	if f.file == nil {
		return
	}
	if remove {
		os.Remove(f.path)
	}
	f.file.Close()
	f.file = nil
	if remove {
		os.Remove(filepath.Dir(f.path)) // fails while there are others
	}
}
