package unpack_test

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"

	"github.com/seed1158cd35/weir/internal/unpack"
)

func pack(tb testing.TB, coding string, body []byte) []byte {
	tb.Helper()
	var b bytes.Buffer
	var w io.WriteCloser = brotli.NewWriter(&b)
	switch coding {
	case "zstd":
		z, err := zstd.NewWriter(&b)
		if err != nil {
			tb.Fatal(err)
		}
		w = z
	case "gzip":
		w = gzip.NewWriter(&b)
	case "deflate":
		w = zlib.NewWriter(&b)
	}
	if _, err := w.Write(body); err != nil {
		tb.Fatal(err)
	}
	if err := w.Close(); err != nil {
		tb.Fatal(err)
	}
	return b.Bytes()
}

func TestBytesReturnsWhatWasPacked(t *testing.T) {
	body := []byte(`{"parameters":{"retry_after":4}}`)
	for _, coding := range []string{"br", "zstd"} {
		p := pack(t, coding, body)
		for range 3 { // a reused decoder
			if got := unpack.Bytes(coding, p, 1000); !bytes.Equal(got, body) {
				t.Errorf("%s: %q", coding, got)
			}
			if got := unpack.Bytes(coding, p, 5); string(got) != `{"par` {
				t.Errorf("%s, bounded: %q", coding, got)
			}
			unpack.Bytes(coding, []byte("no such thing"), 1000)
			unpack.Bytes(coding, p[:len(p)/2], 1000)
			unpack.Bytes(coding, nil, 1000)
		}
	}
	if got := unpack.Bytes("compress", body, 1000); got != nil {
		t.Errorf("an unknown coding: %q", got)
	}
}

// TestBytesIsBounded decodes a body that would have 256 MiB.
func TestBytesIsBounded(t *testing.T) {
	for _, coding := range []string{"br", "zstd"} {
		p := pack(t, coding, make([]byte, 256<<20))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if got := unpack.Bytes(coding, p, 64<<10); len(got) != 64<<10 {
			t.Errorf("%s: %d bytes", coding, len(got))
		}
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > 40<<20 {
			t.Errorf("%s: allocated %d bytes", coding, n)
		}
	}
}

func FuzzBytes(f *testing.F) {
	f.Add(true, pack(f, "br", []byte(`{"retry_after":4}`)))
	f.Add(false, pack(f, "zstd", []byte(`{"retry_after":4}`)))
	f.Fuzz(func(t *testing.T, br bool, packed []byte) {
		coding := "zstd"
		if br {
			coding = "br"
		}
		if got := unpack.Bytes(coding, packed, 64<<10); len(got) > 64<<10 {
			t.Errorf("%d bytes", len(got))
		}
	})
}

// Few bytes can decode to gigabytes. Copy stops.
func TestCopyIsBounded(t *testing.T) {
	const most = 100_000
	for _, coding := range []string{"gzip", "deflate", "br", "zstd"} {
		fed := 0
		err := unpack.Copy(coding, bytes.NewReader(pack(t, coding, make([]byte, 1<<20))), most, func(b []byte) { fed += len(b) })
		if fed != most || err != nil {
			t.Errorf("%s: fed %d bytes, %v, want %d", coding, fed, err, most)
		}
	}
}

// A body that is not encoded as declared stays as it is, and data after an encoded body is ignored.
func TestReaderToleratesMislabeledBodies(t *testing.T) {
	const text = "data: {\"choices\":[]}\n\n"
	for _, coding := range []string{"gzip", "deflate", "zstd"} {
		for _, body := range []string{text, "short", ""} {
			if got, err := io.ReadAll(unpack.NewReader(coding, strings.NewReader(body), 1000)); string(got) != body || err != nil {
				t.Errorf("%s: %q, %v, want %q", coding, got, err, body)
			}
		}
		packed := string(pack(t, coding, []byte(text)))
		if got, err := io.ReadAll(unpack.NewReader(coding, strings.NewReader(packed+"\n, other data"), 1000)); string(got) != text || err != nil {
			t.Errorf("%s, with other data: %q, %v", coding, got, err)
		}
		if got, err := io.ReadAll(unpack.NewReader(coding, strings.NewReader(packed[:len(packed)-3]), 1000)); err == nil {
			t.Errorf("%s, cut: %q without error", coding, got)
		}
	}
}
