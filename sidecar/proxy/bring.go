package proxy

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// late is when the head of an answer is passed on although nothing of its body has come. Nearly always
// it has, and both are written at once.
const late = 5 * time.Millisecond

// bring gives the caller an answer. If it breaks off so does ours: panics are how net/http has it.
func bring(w http.ResponseWriter, in *http.Request, resp *http.Response) {
	h := w.Header()
	for name, values := range resp.Header {
		if was := h[name]; was != nil {
			values = append(slices.Clip(was), values...)
		}
		h[name] = values
	}
	announced := len(resp.Trailer)
	if announced > 0 {
		names := make([]string, 0, announced)
		for name := range resp.Trailer {
			names = append(names, name)
		}
		h["Trailer"] = append(h["Trailer"], strings.Join(names, ", "))
	}
	w.WriteHeader(resp.StatusCode)
	err := copyBody(w, in.Method, resp)
	_ = resp.Body.Close() // so that its trailers are there
	if err != nil {
		if in.Context().Value(http.ServerContextKey) == nil {
			return // nobody would recover
		}
		panic(http.ErrAbortHandler)
	}
	if len(resp.Trailer) == 0 {
		return
	}
	_ = flush(w) // or net/http could give a short answer a length, and no trailers
	prefix := ""
	if len(resp.Trailer) != announced {
		prefix = http.TrailerPrefix
	}
	for name, values := range resp.Trailer {
		h[prefix+name] = append(h[prefix+name], values...)
	}
}

func flush(w http.ResponseWriter) error { return http.NewResponseController(w).Flush() }

// copyBody copies the body of an answer. What has come is passed on before more is waited for; what has
// come whole is written once, with its head and what ends it.
func copyBody(w http.ResponseWriter, method string, resp *http.Response) error {
	began := func() {}
	switch {
	case method == http.MethodHead || resp.ContentLength == 0:
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
		case left != 0 && n > 0:
			if err := flush(w); err != nil {
				return err
			}
		}
	}
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
