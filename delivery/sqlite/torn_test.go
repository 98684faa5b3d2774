package sqlite_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/delivery/sqlite"
)

// If the log is torn or corrupted within the last writes, exactly the deliveries stored before are there, complete.
func TestATornLog(t *testing.T) {
	from := path(t)
	if err := os.Mkdir(filepath.Dir(from), 0o700); err != nil {
		t.Fatal(err)
	}
	s, err := sqlite.Open(t.Context(), from, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var ids []string
	var ends []int64 // size of the log after each was stored
	for i := range 12 {
		r := post("a")
		r.OrderKey = fmt.Sprint("k", i%2)
		ids = append(ids, accept(t, s, r).ID)
		ends = append(ends, int64(len(read(t, from+"-wal"))))
	}
	db, log := read(t, from), read(t, from+"-wal")
	for _, spoil := range []struct {
		name string
		log  func(at int64) []byte
	}{
		{"torn", func(at int64) []byte { return log[:at] }},
		{"zeros", func(at int64) []byte {
			return append(append([]byte{}, log[:at]...), make([]byte, int64(len(log))-at)...)
		}},
		{"a bit", func(at int64) []byte {
			b := append([]byte{}, log...)
			b[at] ^= 4
			return b
		}},
	} {
		for at := ends[2]; at < int64(len(log)); at += 11111 {
			p := filepath.Join(t.TempDir(), "d.db")
			if err := errors.Join(os.WriteFile(p, db, 0o600), os.WriteFile(p+"-wal", spoil.log(at), 0o600)); err != nil {
				t.Fatal(err)
			}
			torn, err := sqlite.Open(t.Context(), p, sqlite.Options{})
			if err != nil {
				t.Fatalf("%s at %d: %v", spoil.name, at, err)
			}
			for i, id := range ids {
				_, err := torn.Get(t.Context(), id)
				if want := ends[i] <= at; want && err != nil || !want && !errors.Is(err, delivery.ErrNotFound) {
					t.Errorf("%s at %d of a log of %d: the one stored at %d: %v", spoil.name, at, len(log), ends[i], err)
				}
			}
			sameCounts(t, torn)
			accept(t, torn, post("a"))
			if err := torn.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// A truncated file is not accepted as a smaller one. Weir refuses to start and leaves it unchanged.
func TestACutFileIsNotOpened(t *testing.T) {
	p := made(t)
	s, err := sqlite.Open(t.Context(), p, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for range 200 {
		accept(t, s, post("a"))
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	whole := read(t, p)
	for _, part := range []int{2, 3, 10} {
		cut := whole[:len(whole)-len(whole)/part]
		if err := os.WriteFile(p, cut, 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := sqlite.Open(t.Context(), p, sqlite.Options{})
		if err == nil {
			_ = s.Close()
			t.Errorf("opened without its last 1/%d", part)
		} else {
			t.Log(err)
		}
		if now := read(t, p); len(now) != len(cut) {
			t.Errorf("%d bytes are left of %d", len(now), len(cut))
		}
	}
}
