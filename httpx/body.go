package httpx

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"time"

	"github.com/seed1158cd35/weir/outcome/classify"
)

// peek reads a prefix of the body and puts it back.
func peek(resp *http.Response) []byte {
	b, err := io.ReadAll(io.LimitReader(resp.Body, classify.MaxBody))
	rest := io.Reader(resp.Body)
	if err != nil {
		rest = failing{err}
	}
	resp.Body = &peeked{io.MultiReader(bytes.NewReader(b), rest), resp.Body}
	return b
}

type peeked struct {
	io.Reader
	io.Closer
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// A body is that of an answer, whose end releases the attempt's context.
type body struct {
	io.ReadCloser
	cancel context.CancelCauseFunc
}

func (b *body) Close() error {
	err := b.ReadCloser.Close()
	b.cancel(context.Canceled)
	return err
}

// abandon gives up reading.
func (b *body) abandon() { b.cancel(context.Canceled) }

// discardTime is how long the rest of an answer that nobody wants is waited for.
const discardTime = 100 * time.Millisecond

// discard ends an answer that the caller does not get. A little is read, so that
// the connection can be used again, but not of a body that is slow to come.
func discard(resp *http.Response) {
	if resp == nil {
		return
	}
	if b, ok := resp.Body.(interface{ abandon() }); ok {
		defer time.AfterFunc(discardTime, b.abandon).Stop()
	}
	_, _ = io.CopyN(io.Discard, resp.Body, 16<<10)
	_ = resp.Body.Close()
}
