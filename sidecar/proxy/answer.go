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

// late is how long the head of a response waits for the first bytes of the body. Nearly always they arrive earlier, and
// one write sends both.
const late = 5 * time.Millisecond

// bring sends a response to the caller. An error means that it broke off.
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
		h["Content-Type"] = nil // prevents net/http from guessing a type, such as HTML
	}
	w.WriteHeader(resp.StatusCode)
	err := copyBody(w, in.Method, resp)
	_ = resp.Body.Close() // makes the trailers available
	if err != nil || len(resp.Trailer) == 0 {
		return err
	}
	_ = flush(w) // or net/http could add Content-Length to a short response and drop its trailers
	for name, values := range resp.Trailer {
		if !slices.Contains(announced, name) {
			name = http.TrailerPrefix + name
		}
		h[name] = values // replaces a header of the same name, which has been sent
	}
	return nil
}

// flush flushes w if w can flush.
func flush(w http.ResponseWriter) error {
	if err := http.NewResponseController(w).Flush(); !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	return nil
}

// copyBody copies the body of a response. It flushes what has arrived before it waits for more. A response that arrived
// completely is written once, with its head and end. In HTTP/1, the end of a body of known length arrives with its last
// byte. In HTTP/2 it is a separate frame, which may be late.
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
			_ = flush(w) // the caller gets the part that arrived
			return err
		case n > 0 && (left != 0 || resp.ProtoMajor != 1):
			if err := flush(w); err != nil {
				return err
			}
		}
	}
}

// ended reports whether a gRPC response consists of a head only. Such a head must be sent together with the end of the
// stream. Otherwise it would look like an incomplete response without trailers.
func ended(resp *http.Response) bool {
	return resp.ContentLength == 0 && resp.Header["Grpc-Status"] != nil
}

// isEvents reports whether a response is a stream of events.
func isEvents(h http.Header) bool {
	kind, _, _ := strings.Cut(h.Get("Content-Type"), ";")
	return strings.EqualFold(strings.TrimSpace(kind), "text/event-stream")
}

// headLater flushes the head of a response if its body is late. The caller must call began before it writes.
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
