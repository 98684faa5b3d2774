package serve

import (
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/seed1158cd35/weir/internal/doc"
	"github.com/seed1158cd35/weir/observe"
	"github.com/seed1158cd35/weir/sidecar/config"
	"github.com/seed1158cd35/weir/sidecar/status"
)

// loaded is which file is in force, for people. A reload changes it while others read.
type loaded struct {
	first *config.File // by which weir was started: what needs a new start is in force as it says it
	now   atomic.Pointer[taken]
}

// taken is a file as it was taken over, and how the latest reload went that was not.
type taken struct {
	file *config.File
	status.Config
}

// begin is the start.
func (l *loaded) begin(path string, file *config.File) {
	l.first = file
	l.now.Store(&taken{file, status.Config{File: path, Loaded: time.Now()}})
}

// again is a reload that was taken over, but for the fields of pending; store is what the store does not know of what it adds.
func (l *loaded) again(file *config.File, pending []string, store string) {
	l.now.Store(&taken{file, status.Config{File: l.now.Load().File, Loaded: time.Now(), Pending: pending, Store: store}})
}

// failed is one that changed nothing.
func (l *loaded) failed(err error) {
	next := *l.now.Load()
	next.FailedAt, next.Error = time.Now(), observe.Error(err)
	l.now.Store(&next)
}

func (l *loaded) status() *status.Config {
	c := l.now.Load().Config
	return &c
}

// settings are what is in force.
func (l *loaded) settings() []doc.Setting {
	now := l.now.Load()
	all := now.file.Settings()
	if len(now.Pending) == 0 {
		return all
	}
	all = slices.DeleteFunc(all, func(s doc.Setting) bool { return now.waits(s.Field) })
	for _, s := range l.first.Settings() {
		if now.waits(s.Field) {
			all = append(all, s)
		}
	}
	return all
}

// waits reports whether a field is in force as it was at the start.
func (t *taken) waits(field string) bool {
	return slices.ContainsFunc(t.Pending, func(name string) bool {
		switch name {
		case "jobs": // of each upstream
			return strings.HasPrefix(field, "upstreams.") && strings.Contains(field, ".jobs")
		case "admin":
			return field == "admin" || field == "admin_tls" || field == "admin_auth"
		}
		return field == name || strings.HasPrefix(field, name+".")
	})
}
