package filestore_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/fleet/filestore"
	"github.com/seed1158cd35/weir/internal/test/campaign"
	"github.com/seed1158cd35/weir/internal/test/raced"
)

// whole returns a file with entries in every part and pages of every kind.
func whole(t testing.TB) []byte {
	t.Helper()
	path := file(t)
	s := open(t, path, quick)
	useAll(t, s)
	for i := range 100 {
		r := fleet.Record{Name: fmt.Sprint(i), Value: make([]byte, 1+i*i), Keep: time.Hour}
		if _, _, err := s.Swap(context.Background(), "g", r); err != nil {
			t.Fatal(err)
		}
	}
	closed(t, s)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// useAll takes from many keys.
func useAll(t testing.TB, s *filestore.Store) {
	for i := range 400 {
		k := claim(time.Now(), roll, 1)
		k.Key = fmt.Sprint(i, strings.Repeat("x", i%50))
		take(t, s, 1, k, claim(time.Now(), slow, 1), claim(time.Now(), quota, 1))
	}
}

func write(t testing.TB, b []byte) (path string) {
	t.Helper()
	path = file(t)
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// tryFile opens a file and uses it if it opens. It must not panic, and its error must name the file.
func tryFile(b []byte, path string) error {
	if err := os.WriteFile(path, b, 0o600); err != nil {
		return err
	}
	s, err := filestore.Open(path, quick)
	if err != nil {
		if !strings.Contains(err.Error(), path) || !errors.Is(err, filestore.ErrDamaged) && !errors.Is(err, filestore.ErrForeign) {
			return fmt.Errorf("the error does not say which file and what to do: %w", err)
		}
		return nil
	}
	ctx := context.Background()
	for i := range 5 {
		a := &fleet.Ask{Group: "g", ID: uint64(i + 1), Lane: 7, Copies: 1, Claims: []fleet.Claim{claim(time.Now(), slow, 1), claim(time.Now(), quota, 1)}}
		if err := s.Take(ctx, a); err == nil && a.Grants[0].Left > 1_000_000-401 {
			return fmt.Errorf("%d left of what a whole file counts 400 of", a.Grants[0].Left)
		}
		_, _, _ = s.Swap(ctx, "g", fleet.Record{Name: fmt.Sprint(i), Value: []byte("new"), Keep: time.Hour})
		_, _, _ = s.Load(ctx, "g", []string{"1", "2", "99"})
	}
	return s.Close()
}

func TestATruncatedFileIsAnError(t *testing.T) {
	b := whole(t)
	for _, n := range []int{1, 15, 16, 79, 80, 100, 1023, 1024, 4095, 4096, 4097, 8191, 8192, 8193, 12288, 16384, len(b) / 2} {
		s, err := filestore.Open(write(t, b[:n]), quick)
		if err == nil {
			t.Errorf("%d of %d bytes opened", n, len(b))
			closed(t, s)
		} else if !errors.Is(err, filestore.ErrDamaged) && !errors.Is(err, filestore.ErrForeign) {
			t.Errorf("%d of %d bytes: %v", n, len(b), err)
		}
	}
}

// The test damages a file in some hundred ways: bits, bytes, numbers, pages and ends.
func TestDamageIsAnErrorAndNoPanic(t *testing.T) {
	raced.Skip(t, "it plays many long histories, and shorter tests run the same code")
	b := whole(t)
	path := file(t)
	for range campaign.Of(300, 1500) {
		seed := rand.Uint64()
		rng := rand.New(rand.NewPCG(seed, 1))
		if err := tryFile(spoiled(rng, b), path); err != nil {
			t.Fatalf("seed %#x: %v", seed, err)
		}
	}
}

func spoiled(rng *rand.Rand, whole []byte) []byte {
	b := append([]byte(nil), whole...)
	for range 1 + rng.IntN(3) {
		at := rng.IntN(len(b))
		if rng.IntN(2) == 0 {
			at = at/4096*4096 + rng.IntN(64) // in the page header
			at = min(at, len(b)-1)
		}
		switch rng.IntN(6) {
		case 0:
			b[at] ^= 1 << rng.IntN(8)
		case 1:
			b[at] = byte(rng.Uint32())
		case 2:
			for i := at; i < min(at+rng.IntN(9000), len(b)); i++ {
				b[i] = byte(rng.Uint32())
			}
		case 3:
			clear(b[at:min(at+rng.IntN(9000), len(b))])
		case 4:
			b = b[:max(1, at)]
		case 5: // one page replaces another
			from := rng.IntN(len(b)) / 4096 * 4096
			copy(b[at/4096*4096:], b[from:min(from+4096, len(b))])
		}
	}
	return b
}

func TestAForeignFileIsRefused(t *testing.T) {
	for _, text := range []string{"#!/bin/sh\necho hello\n", strings.Repeat("not a database\n", 10_000), "SQLite format 3\x00" + strings.Repeat("\x00", 100_000)} {
		path := write(t, []byte(text))
		if _, err := filestore.Open(path, quick); !errors.Is(err, filestore.ErrForeign) {
			t.Errorf("%.20q: %v, want ErrForeign", text, err)
		}
		if b, err := os.ReadFile(path); err != nil || string(b) != text {
			t.Errorf("%.20q was changed: %v", text, err)
		}
	}
	for _, o := range []*bolt.Options{nil, {NoFreelistSync: true}} {
		path := filepath.Join(t.TempDir(), "other.db")
		db, err := bolt.Open(path, 0o600, o)
		if err != nil {
			t.Fatal(err)
		}
		err = db.Update(func(tx *bolt.Tx) error {
			b, err := tx.CreateBucket([]byte("theirs"))
			if err != nil {
				return err
			}
			return b.Put([]byte("k"), []byte("v"))
		})
		if err := errors.Join(err, db.Close()); err != nil {
			t.Fatal(err)
		}
		if _, err := filestore.Open(path, quick); !errors.Is(err, filestore.ErrForeign) {
			t.Errorf("a file of another program: %v, want ErrForeign", err)
		}
	}
}

func TestPathsThatCannotBeFiles(t *testing.T) {
	dir := t.TempDir()
	for _, path := range []string{dir, filepath.Join(dir, "none", "weir.db")} {
		if _, err := filestore.Open(path, quick); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v, want an error that names it", path, err)
		}
	}
	path := filepath.Join(dir, "empty.db") // as a deployment may have created it
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	open(t, path, quick)
}

// The process that created the file was killed before it wrote anything.
func TestAFileThatWasNeverWrittenIsNew(t *testing.T) {
	path := file(t)
	db, err := bolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if got := left(t, open(t, path, quick), slow); got != 1_000_000 {
		t.Errorf("%d left, want everything", got)
	}
}

// bbolt would write to a page that is in use.
func TestABranchThatNamesAnotherKeyIsDamage(t *testing.T) {
	raced.Skip(t, "it plays many long histories, and shorter tests run the same code")
	b := whole(t)
	path := file(t)
	refused := 0
	for page := 2; page < len(b)/4096; page++ {
		p := b[page*4096 : (page+1)*4096]
		if binary.NativeEndian.Uint64(p) != uint64(page) || binary.NativeEndian.Uint16(p[8:]) != 1 {
			continue
		}
		for i := 0; i < int(binary.NativeEndian.Uint16(p[10:])); i += campaign.Of(3, 1) {
			at := 16 + 16*i
			end := at + int(binary.NativeEndian.Uint32(p[at:])) + int(binary.NativeEndian.Uint32(p[at+4:])) - 1
			p[end]-- // a lower key, still in order
			if err := os.WriteFile(path, b, 0o600); err != nil {
				t.Fatal(err)
			}
			if s, err := filestore.Open(path, quick); errors.Is(err, filestore.ErrDamaged) {
				refused++
			} else if err != nil {
				t.Error(err)
			} else { // the page is unused
				useAll(t, s)
				closed(t, s)
				closed(t, open(t, path, quick))
			}
			p[end]++
		}
	}
	if t.Logf("%d were refused", refused); refused < 10 {
		t.Errorf("%d were refused", refused)
	}
}
