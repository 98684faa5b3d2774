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

// A Named store has a name, the same in all processes that share limits through it and in no others. Processes of one
// machine then report each other's deaths to it: see Options.Members.
type Named interface {
	Name() string
}

const (
	deathsAtOnce = 32 // members that one look reports at most
	// lookAfterDead is how often a process looks for dead members while the store misses some, at most. In a directory of
	// many files it looks less often.
	lookAfterDead = time.Second
	lookPerFile   = 10 * time.Millisecond
)

// deaths reports members of this machine that have ended without leaving: killed, or ended while the store was away. The
// store releases their parts at once, where it would have to wait for Options.Outage. Only run uses it.
type deaths struct {
	fleet  *Fleet
	dir    *memberfile.Dir
	own    *memberfile.File
	groups []string // that the own file names
	found  []*memberfile.File
	next   time.Duration // the earliest instant of the next look
}

// membersDir is the directory of the member files of a store, "" if there is none.
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

// reportDeaths makes the file of this process, and reports deaths until ctx ends. Without a file the store waits for
// Options.Outage after a crash.
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
	for _, g := range f.all() { // a share may have been used before
		g.own.Lock()
		if g.used {
			g.noteUse(g.addUse)
		}
		g.own.Unlock()
	}
	defer func() {
		for _, dead := range d.found { // others report them
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

// endLife ends the lock of the own file. If the store knows that this process has left, the file goes, too; else another
// process reports its end.
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

// member is what the file of this process says.
func (d *deaths) member() memberfile.Member {
	m := memberfile.Member{ID: d.fleet.member}
	for _, g := range d.fleet.all() {
		m.Groups = append(m.Groups, g.name)
	}
	return m
}

// look notes new groups in the own file, and reports those who have died, if the store misses members.
func (d *deaths) look(ctx context.Context) {
	if m := d.member(); !slices.Equal(m.Groups, d.groups) {
		d.groups = m.Groups
		_ = d.own.Update(func(own *memberfile.Member) { own.Groups = m.Groups }) // without it the store waits for Options.Outage
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

// report tells the store of the end of a member in all its groups, and reports whether it has heard that.
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

// partUsed notes in the own file, before it happens for the first time since the store was heard, that the part is used;
// own is held.
func (g *Group) partUsed() {
	if !g.used {
		g.used = true
		g.noteUse(g.addUse)
	}
}

func (g *Group) addUse(used []string) []string { return append(used, g.name) }

// partReported notes that the store knows what was used of the part; own is held.
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
		_ = own.Update(func(m *memberfile.Member) { m.Used = change(m.Used) }) // if that fails, there is no file any more
	}
}

// missing reports whether the store has said of late that members are silent.
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
