package proxy

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

type kept struct{ *strings.Reader }

func (kept) Close() error { return nil }

// A lent body in memory is still recognized as such, and fails reads after Close.
func TestALentBodyStaysInMemory(t *testing.T) {
	b := lend(kept{strings.NewReader("abc")})
	if m, ok := b.(inMemory); !ok || m.Len() != 3 {
		t.Fatalf("it is not known to be in memory")
	}
	for range 2 {
		if got, err := io.ReadAll(b); string(got) != "abc" || err != nil {
			t.Errorf("got %q, %v", got, err)
		}
		if _, err := b.(io.Seeker).Seek(0, io.SeekStart); err != nil {
			t.Error(err)
		}
	}
	_ = b.Close()
	if _, err := b.Read(make([]byte, 1)); err != errGivenBack {
		t.Errorf("read after it was given back: %v", err)
	}
	if _, ok := lend(http.NoBody).(inMemory); ok {
		t.Error("a body of which nothing is known is taken for one in memory")
	}
}
