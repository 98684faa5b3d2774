package resign

import (
	"bytes"
	"crypto/sha256"
	enc "encoding/hex"
	"fmt"
	"io"
	"net/http"
)

// hash returns the payload hash to sign. Without a hash from the client the body is read, because only S3 accepts a body without
// a hash.
func (p *Plan) hash(out *http.Request) (string, error) {
	switch {
	case p.payload != "":
		return p.payload, nil
	case out.Body == nil || out.Body == http.NoBody || out.ContentLength == 0:
		return emptyHash, nil
	case p.s3() && out.URL.Scheme == "https":
		return unsignedPayload, nil
	case out.ContentLength > p.s.o.MaxHash:
		return "", p.tooLarge()
	}
	body, err := io.ReadAll(io.LimitReader(out.Body, p.s.o.MaxHash+1))
	_ = out.Body.Close()
	if err != nil {
		return "", err
	}
	if int64(len(body)) > p.s.o.MaxHash {
		return "", p.tooLarge()
	}
	out.Body, out.ContentLength = kept{bytes.NewReader(body)}, int64(len(body))
	sum := sha256.Sum256(body)
	return enc.EncodeToString(sum[:]), nil
}

// kept is a body that was read to hash it.
type kept struct{ *bytes.Reader }

// Close implements io.Closer.
func (kept) Close() error { return nil }

// InMemory reports that reading never blocks.
func (kept) InMemory() bool { return true }

func (p *Plan) tooLarge() error {
	return &RequestError{fmt.Sprintf("the body has no x-amz-content-sha256, and is larger than the %d bytes that weir reads to compute the hash: have the client send the hash", p.s.o.MaxHash)}
}
