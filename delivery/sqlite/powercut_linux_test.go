package sqlite_test

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	lib "modernc.org/sqlite/lib"

	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/delivery/sqlite"
	"github.com/seed1158cd35/weir/internal/test/campaign"
)

// A volatileDisk records all changes of files, to reconstruct possible states after a power cut. Synced changes are
// kept, and any part of the rest may be lost.
type volatileDisk struct {
	mu  sync.Mutex
	ops []diskOp
}

func (*volatileDisk) may(string, int64) int32 { return lib.SQLITE_OK }

func (d *volatileDisk) did(op diskOp) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ops = append(d.ops, op)
}

func (d *volatileDisk) now() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.ops)
}

// A volatileFile is a file before a power cut.
type volatileFile struct {
	durable []byte
	pending []diskOp // since the last sync
	named   bool     // its name is durable
	deleted []byte   // contents of a deleted file with this name, which may come back until the directory is synced
}

// A remainder defines which changes that were not synced remain after a power cut.
type remainder int

const (
	nothing remainder = iota
	everything
	someWrites
	someSectors
	remainders
)

// A replay computes the states after power cuts, in the order of the changes.
type replay struct {
	d     *volatileDisk
	done  int // number of changes
	files map[string]*volatileFile
}

func (d *volatileDisk) replay() *replay {
	return &replay{d: d, files: map[string]*volatileFile{file0: {}}}
}

// advance applies changes up to a number.
func (p *replay) advance(after int) {
	for ; p.done < after; p.done++ {
		op := p.d.ops[p.done]
		f := p.files[op.name]
		if f == nil {
			f = new(volatileFile)
			p.files[op.name] = f
		}
		switch op.kind {
		case opSync:
			for _, op := range f.pending {
				f.durable = op.apply(f.durable, nil)
			}
			f.pending = nil
			if !f.named && op.name != file0 { // SQLite syncs the directory with the first sync of a log or a journal
				for _, other := range p.files {
					other.deleted = nil
				}
			}
			f.named = true
		case opDelete:
			*f = volatileFile{deleted: f.durable}
		default:
			f.pending = append(f.pending, op)
		}
	}
}

// cut writes the state after a power cut, which follows the given number of changes, to a directory.
func (p *replay) cut(t *testing.T, after int, to string, of remainder, r *rand.Rand) {
	t.Helper()
	p.advance(after)
	for name, f := range p.files {
		is := bytes.Clone(f.durable)
		for _, op := range f.pending {
			switch {
			case of == everything, of == someWrites && r.IntN(2) == 0:
				is = op.apply(is, nil)
			case of == someSectors:
				is = op.apply(is, r)
			}
		}
		if f.deleted != nil && r.IntN(2) == 0 {
			is = f.deleted
		}
		if is == nil && name != file0 {
			continue
		}
		if err := os.WriteFile(filepath.Join(to, name), is, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// file0 is the name of the file, which exists from the start.
const file0 = "d.db"

const sector = 512

// apply applies the change to the contents of a file. If r is not nil, it applies only random sectors of it.
func (op *diskOp) apply(to []byte, r *rand.Rand) []byte {
	if op.kind == opTruncate {
		if r != nil && r.IntN(2) == 0 {
			return to
		}
		return grown(to, op.at)[:op.at]
	}
	for at := 0; at < len(op.data); at += sector {
		if r != nil && r.IntN(2) == 0 {
			continue
		}
		part := op.data[at:min(at+sector, len(op.data))]
		from := op.at + int64(at)
		to = grown(to, from+int64(len(part)))
		copy(to[from:], part)
	}
	return to
}

func grown(b []byte, size int64) []byte {
	if n := size - int64(len(b)); n > 0 {
		return append(b, make([]byte, n)...)
	}
	return b
}

// A promise is what a caller learned about a delivery, and after how many changes of the disk.
type promise struct {
	at   int
	id   string
	body []byte
	is   delivery.Status // empty for deleted
}

// A powerStory contains the actions of callers before the power cut.
type powerStory struct {
	*testing.T
	d *volatileDisk

	mu   sync.Mutex
	told []promise
}

func (p *powerStory) tell(id string, body []byte, is delivery.Status) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.told = append(p.told, promise{p.d.now(), id, body, is})
}

func (p *powerStory) must(err error) {
	if err != nil {
		p.Error(err)
	}
}

func (p *powerStory) accept(s *sqlite.Store, r *delivery.Request) delivery.Delivery {
	d, _, err := s.Accept(p.Context(), r)
	p.must(err)
	p.tell(d.ID, r.Body, delivery.Queued)
	return d
}

// play stores, sends, redrives and deletes various deliveries, from several callers.
func (p *powerStory) play(path string, r *rand.Rand, rounds int) {
	s, err := sqlite.Open(p.Context(), path, sqlite.Options{})
	if err != nil {
		p.Fatal(err)
	}
	for round := range rounds {
		var wg sync.WaitGroup
		for i := range 3 {
			q := post("a")
			q.Body = make([]byte, []int{10, 3000, 100_000}[r.IntN(3)])
			_, _ = rand.NewChaCha8([32]byte{byte(round), byte(i)}).Read(q.Body)
			if r.IntN(2) == 0 {
				q.Key = fmt.Sprint("key", round, i)
			}
			if r.IntN(3) == 0 {
				q.Callback = "told"
			}
			wg.Go(func() { p.accept(s, q) })
		}
		wg.Wait()
		all, err := s.Claim(p.Context(), delivery.Ask{Upstream: "a", Most: 1 + r.IntN(3), Lease: time.Hour})
		p.must(err)
		for _, d := range all {
			to := []delivery.Status{delivery.Completed, delivery.Failed, delivery.Queued}[r.IntN(3)]
			_, err := s.End(p.Context(), delivery.End{Claim: d.Claim(), To: to, Reason: delivery.Rejected, Attempt: &delivery.Attempt{Status: 200, Answer: []byte("yes")}})
			p.must(err)
			p.tell(d.ID, d.Body, to)
			if to != delivery.Failed {
				continue
			}
			f := delivery.Filter{IDs: []string{d.ID}, Status: delivery.Failed}
			switch r.IntN(3) {
			case 0:
				_, err = s.Redrive(p.Context(), f, 1)
				p.tell(d.ID, d.Body, delivery.Queued)
			case 1:
				_, err = s.Drop(p.Context(), f, 1)
				p.tell(d.ID, d.Body, "")
			}
			p.must(err)
		}
		if r.IntN(4) == 0 { // which writes the log to the file and deletes the log
			p.must(s.Close())
			if s, err = sqlite.Open(p.Context(), path, sqlite.Options{}); err != nil {
				p.Fatal(err)
			}
		}
	}
	p.must(s.Close())
}

// check opens the state after a number of changes. It verifies everything that callers had learned by then. Changes
// that callers learned about later may be stored or not.
func (p *powerStory) check(path string, after int) error {
	s, err := sqlite.Open(p.Context(), path, sqlite.Options{})
	if err != nil {
		return err
	}
	defer s.Close()
	told, may := make(map[string]promise), make(map[string][]delivery.Status)
	for _, w := range p.told {
		if w.at <= after {
			told[w.id], may[w.id] = w, []delivery.Status{w.is}
		} else {
			may[w.id] = append(may[w.id], w.is)
		}
	}
	var errs []error
	for id, w := range told {
		d, err := s.Get(p.Context(), id)
		if errors.Is(err, delivery.ErrNotFound) {
			err = nil
		}
		if err != nil || !slices.Contains(may[id], d.Status) || d.Status != "" && !bytes.Equal(d.Body, w.body) {
			errs = append(errs, fmt.Errorf("%s is %q, want one of %q; its body is the same: %v (%v)", id, d.Status, may[id], bytes.Equal(d.Body, w.body), err))
		}
	}
	if is := s.Pragma(p.T, "integrity_check"); is != "ok" {
		errs = append(errs, errors.New(is))
	}
	sameCounts(p.T, s)
	if _, _, err := s.Accept(p.Context(), post("after")); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// A power cut after any write of SQLite loses no accepted delivery and no recorded end, whatever part of the unsynced
// changes is lost.
func TestPowerCutLosesNothingAccepted(t *testing.T) {
	for seed := range uint64(campaign.Of(1, 6)) {
		r := rand.New(rand.NewPCG(seed, 30))
		dir := t.TempDir()
		p := &powerStory{T: t, d: new(volatileDisk)}
		onDisk(t, dir, p.d)
		p.play(filepath.Join(dir, file0), r, campaign.Of(8, 12))
		if t.Failed() {
			t.Fatal("seed ", seed)
		}
		tried, replay := 0, p.d.replay()
		try := func(after int, of remainder) {
			tried++
			cut := t.TempDir()
			replay.cut(t, after, cut, of, r)
			onDisk(t, cut, new(volatileDisk)) // with a disk that syncs nothing
			if err := p.check(filepath.Join(cut, file0), after); err != nil || t.Failed() {
				t.Fatalf("seed %d, cut after %d of %d changes, remainder %d: %v", seed, after, len(p.d.ops), of, err)
			}
			if err := os.RemoveAll(cut); err != nil {
				t.Fatal(err)
			}
		}
		for after := range len(p.d.ops) + 1 {
			switch {
			case after < 15: // the file is being created
				for i := range campaign.Histories(int(remainders), int(remainders)) {
					try(after, remainder(after+i)%remainders)
				}
			case r.IntN(len(p.d.ops)) < campaign.Histories(60, 400), p.d.telling(after, p.told):
				try(after, remainder(r.IntN(int(remainders))))
			}
		}
		t.Logf("seed %d: %d changes of the disk, %d cuts, %d promises", seed, len(p.d.ops), tried, len(p.told))
	}
}

// A power cut while another program writes its database leaves a rollback journal. Weir refuses the file, like any
// foreign file, and does not convert it to write-ahead logging.
func TestForeignFileAfterPowerCutIsRefused(t *testing.T) {
	dir, cut := t.TempDir(), t.TempDir()
	d := new(volatileDisk)
	onDisk(t, dir, d)
	db, err := sql.Open("sqlite", filepath.Join(dir, file0))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, do := range []string{"CREATE TABLE other (x)", "INSERT INTO other VALUES (1)"} {
		if _, err := db.Exec(do); err != nil {
			t.Fatal(err)
		}
	}
	last := 0 // the last change of the database before its journal is deleted
	for i, op := range d.ops {
		if op.kind == opWrite && op.name == file0 {
			last = i + 1
		}
	}
	d.replay().cut(t, last, cut, everything, rand.New(rand.NewPCG(0, 0)))
	p := filepath.Join(cut, file0)
	if info, err := os.Stat(p + "-journal"); err != nil || info.Size() == 0 {
		t.Fatal("no journal: ", err)
	}
	if _, err := sqlite.Open(t.Context(), p, sqlite.Options{}); err == nil || !strings.Contains(err.Error(), "not a file of deliveries") {
		t.Errorf("got %v, want a refusal", err)
	}
	if b := read(t, p); b[18] != 1 || b[19] != 1 { // the version of the file format: 1 with a rollback journal, 2 with a write-ahead log
		t.Errorf("the file's version is %d, %d, want 1, 1", b[18], b[19])
	}
}

// telling reports whether a caller learned something after exactly this number of changes.
func (d *volatileDisk) telling(after int, told []promise) bool {
	for _, w := range told {
		if w.at == after {
			return true
		}
	}
	return false
}
