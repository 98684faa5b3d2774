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

// A body is the body of a response. Its end releases the attempt's context.
type body struct {
	io.ReadCloser
	cancel context.CancelCauseFunc
}

func (b *body) Close() error {
	err := b.ReadCloser.Close()
	b.cancel(context.Canceled)
	return err
}

func (b *body) abandon() { b.cancel(context.Canceled) }

// discardTime is the maximum wait for the rest of a discarded response.
const discardTime = 100 * time.Millisecond

// discard ends a response that the caller does not get. It reads a little, so that the connection can be reused, but does not
// wait for a slow body.
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
