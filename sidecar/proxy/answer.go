package proxy

import (
	"errors"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// late is when the head of an answer is passed on although nothing of its body has come. Nearly always
// it has, and both are written at once.
const late = 5 * time.Millisecond

// bring gives the caller an answer. An error means that it broke off.
func bring(w http.ResponseWriter, in *http.Request, resp *http.Response) error {
	h := w.Header()
	for name, values := range resp.Header {
		if was := h[name]; was != nil {
			values = append(slices.Clip(was), values...)
		}
		h[name] = values
	}
	announced := slices.Collect(maps.Keys(resp.Trailer))
	if len(announced) > 0 {
		h["Trailer"] = append(h["Trailer"], strings.Join(announced, ", "))
	}
	if h["Content-Type"] == nil {
		h["Content-Type"] = nil // or net/http would guess one, and make a page of what is none
	}
	w.WriteHeader(resp.StatusCode)
	err := copyBody(w, in.Method, resp)
	_ = resp.Body.Close() // so that its trailers are there
	if err != nil || len(resp.Trailer) == 0 {
		return err
	}
	_ = flush(w) // or net/http could give a short answer a length, and no trailers
	for name, values := range resp.Trailer {
		if !slices.Contains(announced, name) {
			name = http.TrailerPrefix + name
		}
		h[name] = values // in place of a header of the same name, which has been sent
	}
	return nil
}

// flush is for writers that cannot flush, too: what they have is not lost.
func flush(w http.ResponseWriter) error {
	if err := http.NewResponseController(w).Flush(); !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	return nil
}

// copyBody copies the body of an answer. What has come is passed on before more is waited for; what has
// come whole is written once, with its head and what ends it. In HTTP/1 the end of a body of known length comes
// with its last byte; in HTTP/2 it is a frame of its own, which may be late.
func copyBody(w http.ResponseWriter, method string, resp *http.Response) error {
	began := func() {}
	switch {
	case method == http.MethodHead || resp.ContentLength == 0 && resp.ProtoMajor == 1 || ended(resp):
	case isEvents(resp.Header):
		_ = flush(w)
	default:
		began = headLater(w)
	}
	buf := pool.Get().(*[bufferSize]byte)
	defer pool.Put(buf)
	for left := resp.ContentLength; ; {
		n, err := resp.Body.Read(buf[:])
		began()
		began = func() {}
		if left -= int64(n); n > 0 {
			if _, err := w.Write(buf[:n]); err != nil {
				return err
			}
		}
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			_ = flush(w) // the caller gets what there is
			return err
		case n > 0 && (left != 0 || resp.ProtoMajor != 1):
			if err := flush(w); err != nil {
				return err
			}
		}
	}
}

// ended reports whether an answer of gRPC is a head and nothing more. Were that head sent before the end is, it would
// be one of an answer that has begun and that its trailers are missing from.
func ended(resp *http.Response) bool {
	return resp.ContentLength == 0 && resp.Header["Grpc-Status"] != nil
}

// isEvents reports whether an answer is a stream of events.
func isEvents(h http.Header) bool {
	kind, _, _ := strings.Cut(h.Get("Content-Type"), ";")
	return strings.EqualFold(strings.TrimSpace(kind), "text/event-stream")
}

// headLater passes the head of an answer on if its body is late. Nothing may be written before began has
// returned.
func headLater(w http.ResponseWriter) (began func()) {
	var passing sync.WaitGroup
	passing.Add(1)
	timer := time.AfterFunc(late, func() {
		defer passing.Done()
		_ = flush(w)
	})
	return func() {
		if !timer.Stop() {
			passing.Wait()
		}
	}
}
