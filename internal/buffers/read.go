package buffers

import (
	"context"
	"io"
	"time"
)

// firstPiece is the memory that is claimed before any of a body arrives. The claim grows with the bytes that arrive, so
// an announced size alone takes no memory from other requests.
const firstPiece = 4 << 10

// Read reads a body and claims memory before each read, twice the bytes that arrive, because bodies are copied. It waits up to
// patience for memory. length is the announced length, or negative if unknown.
func Read(ctx context.Context, from io.Reader, length int64, held *Claim, patience time.Duration) ([]byte, error) {
	if length == 0 {
		return nil, nil
	}
	var body []byte
	for {
		if len(body) == cap(body) {
			if length >= 0 && int64(len(body)) == length {
				return body, nil
			}
			size := max(firstPiece, 2*int64(cap(body)))
			if length < 0 {
				held.Expect(2*size, 0)
			} else {
				size = min(size, length)
			}
			if err := held.Grow(ctx, 2*(size-int64(cap(body))), patience); err != nil {
				return nil, err
			}
			body = append(make([]byte, 0, size), body...)
		}
		n, err := from.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		if err == io.EOF && (length < 0 || int64(len(body)) == length) {
			return body, nil
		}
		if err != nil {
			return nil, err
		}
	}
}
