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

// loaded describes the file in force, for people. It is safe for concurrent use.
type loaded struct {
	first *config.File // the file at the start; fields that need a restart keep its values
	now   atomic.Pointer[taken]
}

// taken is an applied file, with the error of the latest failed reload.
type taken struct {
	file *config.File
	status.Config
}

// begin records the start.
func (l *loaded) begin(path string, file *config.File) {
	l.first = file
	l.now.Store(&taken{file, status.Config{File: path, Loaded: time.Now()}})
}

// again records a successful reload. The fields in pending need a restart. store describes which usage of added
// upstreams the store has not recorded.
func (l *loaded) again(file *config.File, pending []string, store string) {
	l.now.Store(&taken{file, status.Config{File: l.now.Load().File, Loaded: time.Now(), Pending: pending, Store: store}})
}

// failed records a reload that changed nothing.
func (l *loaded) failed(err error) {
	next := *l.now.Load()
	next.FailedAt, next.Error = time.Now(), observe.Error(err)
	l.now.Store(&next)
}

func (l *loaded) status() *status.Config {
	c := l.now.Load().Config
	return &c
}

// settings returns the settings in force.
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

// waits reports whether a field needs a restart to change.
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
