// Package memberfile tells the processes of one machine which of them have ended. Each holds an exclusive lock on a separate
// file in a shared directory. The operating system releases the lock when the process ends in any way, and never before. So a
// process that gets the lock of another's file knows that the other is dead. A process ID, a boot ID or a heartbeat cannot
// prove this: containers share boot IDs, process IDs repeat, and a process without heartbeats may be frozen.
//
// Only locks on file systems of this machine are trusted.
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

// A Member is the content of a file: the holder of the lock, and the groups in which it has parts.
type Member struct {
	Used   []string `json:"used"` // groups in which it may have used its part without a report
	Boot   string   `json:"boot"` // of the machine; "" if unknown
	ID     string   `json:"id"`
	Groups []string `json:"groups"`
}

// HasUsed reports whether an ended member may have used its part of a group without a report. The file is current only if the
// machine has not been restarted since: otherwise writes may be lost.
func (m *Member) HasUsed(group string) bool {
	return m.Boot == "" || m.Boot != bootID() || slices.Contains(m.Used, group)
}

// bootID identifies this run of the machine's kernel. It returns "" if unknown.
var bootID = sync.OnceValue(func() string {
	id, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(id))
})

// ErrUnsupported reports that locks are not reliable here: the system does not support them, or the directory is on a shared file system, or
// other users have access.
var ErrUnsupported = errors.New("member files are not supported here")

// A Dir is a directory of member files. It is safe for concurrent use.
type Dir struct{ path string }

const (
	ending  = ".member"
	making  = ".new" // a file that its owner has not locked yet
	longest = 1 << 20
	// Files whose owner died while creating them are removed after this time.
	makingAtMost = time.Minute
)

// Open creates the directory if it is missing. It checks that only this user has access and that the file system belongs to
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

// A File is the file of one member. This process has its lock until Close or Remove. It is safe for concurrent use.
type File struct {
	Member
	path string
	mu   sync.Mutex
	file *os.File // nil after it was closed
}

// Create creates the file of this process. Other processes see it only after it is locked.
func (d *Dir) Create(m Member) (*File, error) {
	sum := sha256.Sum256([]byte(m.ID)) // an ID may be any text
	path := filepath.Join(d.path, hex.EncodeToString(sum[:12])+ending)
	if err := os.MkdirAll(d.path, 0o700); err != nil { // removing the last file removes the directory
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

// Update changes the member in the file. If that fails, it removes the file, because other processes must not rely on its content.
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

// Dead locks and returns the files of at most atMost ended members. all is the number of files. The caller closes or removes
// each.
func (d *Dir) Dead(atMost int) (dead []*File, all int, err error) {
	entries, err := os.ReadDir(d.path)
	if err != nil && !errors.Is(err, os.ErrNotExist) { // removing the last file removes the directory
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

// take locks the file of a dead member. It returns nil if the member lives or another process was faster. If the file does not
// name a member, take removes it and returns nil.
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

// linked reports whether the open file is still the one at the path. Another process may have removed it between the opening
// and the lock.
func linked(f *os.File, path string) bool {
	a, err := f.Stat()
	if err != nil {
		return false
	}
	b, err := os.Lstat(path)
	return err == nil && os.SameFile(a, b)
}

// Close releases the lock and keeps the file, so that another process finds a dead member.
func (f *File) Close() { f.end(false) }

// Remove removes the file and releases the lock. The member's end was handled.
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
		os.Remove(filepath.Dir(f.path)) // fails if other files exist
	}
}
