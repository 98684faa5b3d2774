package fleet

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed1158cd35/weir/internal/memberfile"
)

// A Named store has a name that is the same in exactly those processes that share limits through it. Processes
// on one machine then report each other's deaths to it; see Options.Members.
type Named interface {
	Name() string
}

const (
	deathsAtOnce = 32 // the largest number of dead members in one round of reports
	// lookAfterDead is the shortest time between searches for dead members while the store misses some. With
	// many files in the directory, searches are rarer.
	lookAfterDead = time.Second
	lookPerFile   = 10 * time.Millisecond
)

// deaths reports members of this machine that have ended without leaving: they were killed, or ended during an
// outage of the store. The store then releases their parts immediately, without waiting for Options.Outage.
// Only Run uses it.
type deaths struct {
	fleet  *Fleet
	dir    *memberfile.Dir
	own    *memberfile.File
	groups []string // that the process's own file names
	found  []*memberfile.File
	next   time.Duration // the earliest instant of the next search
}

// membersDir returns the directory of a store's member files, or "" if there is none.
func membersDir(s Store, o *Options) string {
	named, ok := s.(Named)
	switch {
	case o.Members == "-" || o.Freezes: // a frozen process holds its lock, but spends nothing
		return ""
	case o.Members != "":
		return o.Members
	case !ok:
		return ""
	}
	sum := sha256.Sum256([]byte(named.Name()))
	name := hex.EncodeToString(sum[:8])
	if state, _, _ := strings.Cut(os.Getenv("STATE_DIRECTORY"), ":"); state != "" { // systemd.exec(5)
		return filepath.Join(state, "members", name)
	}
	return filepath.Join(os.TempDir(), "weir-"+strconv.Itoa(os.Geteuid()), name)
}

// reportDeaths creates the file of this process, and reports deaths until ctx ends. Without a file, the store
// waits for Options.Outage after a crash.
func (f *Fleet) reportDeaths(ctx context.Context) {
	path := membersDir(f.store, &f.o)
	if path == "" {
		return
	}
	d := &deaths{fleet: f}
	var err error
	if d.dir, err = memberfile.Open(path); err != nil {
		return
	}
	m := d.member()
	if d.own, err = d.dir.Create(m); err != nil {
		return
	}
	d.groups = m.Groups
	f.mu.Lock()
	f.life = d.own
	f.mu.Unlock()
	for _, g := range f.all() { // a part may have been used before
		g.own.Lock()
		if g.used {
			g.noteUse(g.addUse)
		}
		g.own.Unlock()
	}
	defer func() {
		for _, dead := range d.found { // other processes report these
			dead.Close()
		}
	}()
	for {
		d.look(ctx)
		if f.clock.Sleep(ctx, lookAfterDead/2+f.within(lookAfterDead)) != nil {
			return
		}
	}
}

// endLife releases the lock of the process's own file. If the store knows that this process has left, it also
// deletes the file. Otherwise another process reports its end.
func (f *Fleet) endLife(left bool) {
	f.mu.Lock()
	own := f.life
	f.mu.Unlock()
	switch {
	case own == nil:
	case left:
		own.Remove()
	default:
		own.Close()
	}
}

// member returns the content of this process's file.
func (d *deaths) member() memberfile.Member {
	m := memberfile.Member{ID: d.fleet.member}
	for _, g := range d.fleet.all() {
		m.Groups = append(m.Groups, g.name)
	}
	return m
}

// look adds new groups to the process's own file. If the store misses members, it reports dead ones.
func (d *deaths) look(ctx context.Context) {
	if m := d.member(); !slices.Equal(m.Groups, d.groups) {
		d.groups = m.Groups
		_ = d.own.Update(func(own *memberfile.Member) { own.Groups = m.Groups }) // if this fails, the store waits for Options.Outage
	}
	now := d.fleet.clock.Now()
	if now >= d.next && (d.next == 0 || d.fleet.missing()) {
		dead, all, _ := d.dir.Dead(deathsAtOnce - len(d.found))
		d.found = append(d.found, dead...)
		d.next = now + max(lookAfterDead/2, time.Duration(all)*lookPerFile)
	}
	d.found = slices.DeleteFunc(d.found, func(f *memberfile.File) bool {
		if !d.report(ctx, f) {
			return false
		}
		f.Remove()
		return true
	})
}

// report reports the end of a member to the store in all its groups. It reports whether the store accepted all
// reports.
func (d *deaths) report(ctx context.Context, f *memberfile.File) bool {
	for _, group := range f.Groups {
		b := Beat{Group: group, Client: f.ID, Seq: 1, Silence: 1, Life: 1, Leave: true, Dead: f.HasUsed(group), Idle: !f.HasUsed(group)}
		ctx, cancel := d.fleet.clock.WithTimeout(ctx, longestAsk, context.DeadlineExceeded)
		_, err := d.fleet.store.Beat(ctx, &b)
		cancel()
		if err != nil {
			return false
		}
	}
	return true
}

// partUsed records in the process's own file that the part is in use, before its first use since the last
// response. own is held.
func (g *Group) partUsed() {
	if !g.used {
		g.used = true
		g.noteUse(g.addUse)
	}
}

func (g *Group) addUse(used []string) []string { return append(used, g.name) }

// partReported records that the store knows the usage of the part. own is held.
func (g *Group) partReported() {
	if g.used {
		g.used = false
		g.noteUse(func(used []string) []string {
			return slices.DeleteFunc(used, func(name string) bool { return name == g.name })
		})
	}
}

func (g *Group) noteUse(change func([]string) []string) {
	g.fleet.mu.Lock()
	own := g.fleet.life
	g.fleet.mu.Unlock()
	if own != nil {
		_ = own.Update(func(m *memberfile.Member) { m.Used = change(m.Used) }) // an error means that the file is gone
	}
}

// missing reports whether the store reported silent members lately.
func (f *Fleet) missing() bool {
	for _, g := range f.all() {
		g.own.Lock()
		out := g.beating.out
		g.own.Unlock()
		if out.Out > 0 {
			return true
		}
	}
	return false
}
