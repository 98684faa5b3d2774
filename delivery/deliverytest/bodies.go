package deliverytest

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/delivery"
)

// TestBodies tests an implementation of Bodies. open returns an empty one, and age, which makes the stored bodies
// older.
func TestBodies(t *testing.T, open func(*testing.T) (b delivery.Bodies, age func(by time.Duration))) {
	for name, run := range map[string]func(*testing.T, *bodies){
		"PutAndOpen": putAndOpen, "Replaced": replaced, "Renamed": renamed, "Listed": listed, "OtherBytes": otherBytes, "BadNames": badNames, "Tried": tried,
	} {
		t.Run(name, func(t *testing.T) {
			b, age := open(t)
			run(t, &bodies{t, b, age})
		})
	}
}

type bodies struct {
	*testing.T
	delivery.Bodies
	age func(time.Duration)
}

func blobOf(name string, body []byte) delivery.Blob {
	return delivery.Blob{Name: name, Size: int64(len(body)), Sum: sha256.Sum256(body)}
}

func (b *bodies) put(name string, body []byte) delivery.Blob {
	b.Helper()
	f, err := b.Gather()
	if err != nil {
		b.Fatal(err)
	}
	defer os.Remove(f.Name())
	defer f.Close()
	if _, err := f.Write(body); err != nil {
		b.Fatal(err)
	}
	if err := b.Put(b.Context(), name, f); err != nil {
		b.Fatal(err)
	}
	return blobOf(name, body)
}

// has reads a body twice, like a sender that repeats it.
func (b *bodies) has(of delivery.Blob, want []byte) {
	b.Helper()
	r, err := b.Open(b.Context(), of)
	if err != nil {
		b.Error(err)
		return
	}
	for range 2 {
		got, err := io.ReadAll(r)
		if _, bad := r.Seek(0, io.SeekStart); err != nil || bad != nil || !bytes.Equal(got, want) {
			b.Errorf("%s has %d bytes, want %d: %v, %v", of.Name, len(got), len(want), err, bad)
		}
	}
	if err := r.Close(); err != nil {
		b.Error(err)
	}
}

// lacks checks that opening a body returns ErrNoBody.
func (b *bodies) lacks(of delivery.Blob) {
	b.Helper()
	if r, err := b.Open(b.Context(), of); !errors.Is(err, delivery.ErrNoBody) || r != nil {
		b.Errorf("%s: %v, want ErrNoBody", of.Name, err)
	}
}

func putAndOpen(_ *testing.T, b *bodies) {
	large, small := bytes.Repeat([]byte("0123456789abcdef"), 1<<16), []byte("x")
	one, two := b.put("one", large), b.put("t-w_o.0", small)
	b.has(one, large)
	b.has(two, small)
	b.lacks(blobOf("three", small))
	for range 2 { // removing a missing body is not an error
		if err := b.Remove(b.Context(), "one"); err != nil {
			b.Error(err)
		}
		b.lacks(one)
	}
	b.has(two, small)
	f, err := b.Gather()
	if err != nil {
		b.Fatal(err)
	}
	_ = f.Close()
	_ = os.Remove(f.Name())
	if err := b.Put(b.Context(), "closed", f); err == nil {
		b.Error("a file that is closed was put")
	}
}

func replaced(_ *testing.T, b *bodies) {
	was := b.put("one", []byte("before"))
	is := b.put("one", []byte("after that"))
	b.has(is, []byte("after that"))
	b.lacks(was)
}

func renamed(_ *testing.T, b *bodies) {
	was := b.put("one", []byte("body"))
	if err := b.Rename(b.Context(), "one", "two"); err != nil {
		b.Fatal(err)
	}
	b.lacks(was)
	b.has(blobOf("two", []byte("body")), []byte("body"))
	if err := b.Rename(b.Context(), "one", "three"); err == nil {
		b.Error("what is not there has another name")
	}
	b.has(blobOf("two", []byte("body")), []byte("body"))
}

func listed(_ *testing.T, b *bodies) {
	var want []string
	for i := range 7 {
		name := fmt.Sprintf("body-%d", i)
		b.put(name, []byte("x"))
		want = append(want, name)
	}
	list := func(after string, most int) []string {
		names, err := b.List(b.Context(), after, time.Now().Add(-time.Hour), most)
		if err != nil {
			b.Fatal(err)
		}
		return names
	}
	if names := list("", 100); len(names) > 0 {
		b.Errorf("too young, and listed: %v", names)
	}
	b.age(2 * time.Hour)
	b.put("young", []byte("x"))
	b.put("body-33", []byte("x"))
	for _, tt := range []struct {
		after string
		most  int
		want  []string
	}{{"", 100, want}, {"", 3, want[:3]}, {want[2], 3, want[3:6]}, {want[5], 3, want[6:]}, {want[6], 3, nil}, {"body-", 100, want}, {"c", 100, nil}} {
		if names := list(tt.after, tt.most); !slices.Equal(names, tt.want) {
			b.Errorf("%d after %q: %v, want %v", tt.most, tt.after, names, tt.want)
		}
	}
}

// otherBytes tests that no caller gets a partial or a different body.
func otherBytes(_ *testing.T, b *bodies) {
	body := []byte("0123456789")
	of := b.put("one", body)
	for name, sum := range map[string][]byte{"shorter": body[:9], "longer": []byte("0123456789a"), "other": []byte("x123456789")} {
		other := blobOf("one", sum)
		if b.lacks(other); b.Failed() {
			b.Errorf("it was %s", name)
		}
	}
	b.has(of, body)
}

func badNames(_ *testing.T, b *bodies) {
	for _, name := range []string{"", ".", "..", "../one", "a/b", `a\b`, "/one"} {
		f, err := b.Gather()
		if err != nil {
			b.Fatal(err)
		}
		if err := b.Put(b.Context(), name, f); err == nil {
			b.Errorf("%q was put", name)
		}
		_ = f.Close()
		_ = os.Remove(f.Name())
		if _, err := b.Open(b.Context(), blobOf(name, nil)); err == nil || errors.Is(err, delivery.ErrNoBody) {
			b.Errorf("%q: %v", name, err)
		}
		if b.Remove(b.Context(), name) == nil || b.Rename(b.Context(), name, "one") == nil || b.Rename(b.Context(), "one", name) == nil {
			b.Errorf("%q was removed, or renamed", name)
		}
	}
}

// tried tests that TryBodies leaves no body behind.
func tried(_ *testing.T, b *bodies) {
	if err := delivery.TryBodies(b.Context(), b.Bodies); err != nil {
		b.Fatal(err)
	}
	b.age(2 * time.Hour)
	if names, err := b.List(b.Context(), "", time.Now().Add(-time.Hour), 10); err != nil || len(names) > 0 {
		b.Errorf("it left %v, %v", names, err)
	}
}
