package resign

import (
	"bufio"
	"crypto/hmac"
	"crypto/sha256"
	enc "encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A chain signs a request and its chunks. Each signature covers the previous one (Amazon S3 API reference, "Signature
// calculations: transferring payload in multiple chunks").
type chain struct {
	mac  hash.Hash // with the signing key
	at   string
	of   string // the scope: DAY/REGION/SERVICE/aws4_request
	last string // the latest signature, in hexadecimal
	key  *key
}

const instant = "20060102T150405Z"

func (s *Signer) newChain(secret, region, service string, at time.Time) *chain {
	now := at.Format(instant)
	k := s.last.Load()
	if k == nil || k.day != now[:len(k.day)] || k.secret != secret || k.region != region || k.service != service {
		k = newKey(secret, region, service, now)
		s.last.Store(k)
	}
	mac, ok := k.macs.Get().(hash.Hash)
	if !ok {
		mac = hmac.New(sha256.New, k.key)
	}
	return &chain{mac: mac, at: now, of: k.of, key: k}
}

// end returns the chain's hash to the pool of its key.
func (c *chain) end() { c.key.macs.Put(c.mac) }

// A key is the signing key for a day, a region and a service. It is derived from a secret in four steps.
type key struct {
	secret, region, service, day string
	key                          []byte
	of                           string    // its scope
	macs                         sync.Pool // of hashes with the key, to be reset
}

func newKey(secret, region, service, at string) *key {
	k := &key{secret: secret, region: region, service: service, day: at[:len("20060102")], key: []byte("AWS4" + secret)}
	for _, part := range []string{k.day, region, service, "aws4_request"} {
		m := hmac.New(sha256.New, k.key)
		m.Write([]byte(part))
		k.key = m.Sum(nil)
	}
	k.of = k.day + "/" + region + "/" + service + "/aws4_request"
	return k
}

// sign adds a link to the chain: it signs before and the hash of data.
func (c *chain) sign(before string, data []byte) string {
	sum := sha256.Sum256(data)
	var text [64]byte
	enc.Encode(text[:], sum[:])
	c.mac.Reset()
	_, _ = io.WriteString(c.mac, before)
	_, _ = c.mac.Write(text[:])
	c.last = enc.EncodeToString(c.mac.Sum(nil))
	return c.last
}

func (c *chain) seed(request []byte) string {
	return c.sign("AWS4-HMAC-SHA256\n"+c.at+"\n"+c.of+"\n", request)
}

func (c *chain) chunk(data []byte) string {
	return c.sign("AWS4-HMAC-SHA256-PAYLOAD\n"+c.at+"\n"+c.of+"\n"+c.last+"\n"+emptyHash+"\n", data)
}

func (c *chain) trailer(data []byte) string {
	return c.sign("AWS4-HMAC-SHA256-TRAILER\n"+c.at+"\n"+c.of+"\n"+c.last+"\n", data)
}

const (
	largestChunk   = 16 << 20 // held in memory to be signed
	longestLine    = 4 << 10
	mostTrailers   = 20
	chunkSignature = ";chunk-signature="
	trailerName    = "x-amz-trailer-signature"
)

// A FramingError describes the error in a body that should consist of signed chunks.
type FramingError struct{ What string }

func (e *FramingError) Error() string {
	return "the body is not in signed chunks, as x-amz-content-sha256 announces: " + e.What
}

// A framed body reads the chunks that the client sent, and returns them with new signatures. These have the same length, so the
// length of the body does not change.
type framed struct {
	body    io.ReadCloser
	in      *bufio.Reader
	chain   *chain
	trailed bool // trailers follow

	out  []byte // the next bytes to return
	buf  []byte
	over bool
	err  error
}

func reframe(body io.ReadCloser, c *chain, trailed bool) io.ReadCloser {
	return &framed{body: body, in: bufio.NewReaderSize(body, longestLine), chain: c, trailed: trailed}
}

func (f *framed) Close() error { return f.body.Close() }

func (f *framed) Read(p []byte) (int, error) {
	for len(f.out) == 0 {
		switch {
		case f.err != nil:
			return 0, f.err
		case f.over:
			f.err = f.end()
		default:
			f.err = f.next()
		}
	}
	n := copy(p, f.out)
	f.out = f.out[n:]
	return n, nil
}

func (f *framed) end() error {
	if _, err := f.in.ReadByte(); err != io.EOF {
		return wrong("there is data after the last chunk", err)
	}
	return io.EOF
}

func (f *framed) next() error {
	line, err := f.line()
	if err != nil {
		return err
	}
	size, n, err := sizeOf(line)
	if err != nil {
		return err
	}
	if n == 0 {
		f.over = true
		f.out = append(f.buf[:0], size+chunkSignature+f.chain.chunk(nil)+"\r\n"...)
		return f.last()
	}
	head := len(size) + len(chunkSignature) + 64 + 2
	f.buf = sized(f.buf, head+n+2)
	if _, err := io.ReadFull(f.in, f.buf[head:]); err != nil {
		return wrong("a chunk of "+strconv.Itoa(n)+" bytes is cut off", err)
	}
	if string(f.buf[head+n:]) != "\r\n" {
		return &FramingError{"a chunk does not end where its size says"}
	}
	copy(f.buf, size+chunkSignature+f.chain.chunk(f.buf[head:head+n])+"\r\n")
	f.out = f.buf
	return nil
}

// sized returns a slice of n bytes, and reuses b if possible.
func sized(b []byte, n int) []byte {
	if cap(b) >= n {
		return b[:n]
	}
	return make([]byte, n)
}

// sizeOf parses SIZE;chunk-signature=...
func sizeOf(line string) (text string, n int, err error) {
	text, rest, ok := strings.Cut(line, ";")
	v, bad := strconv.ParseUint(text, 16, 32)
	switch {
	case bad != nil || !ok || !strings.HasPrefix(rest, chunkSignature[1:]) || !isHash(rest[len(chunkSignature)-1:]):
		return "", 0, &FramingError{fmt.Sprintf("%.40q is not a chunk header", line)}
	case v > largestChunk:
		return "", 0, &FramingError{fmt.Sprintf("a chunk has %d bytes; want at most %d", v, largestChunk)}
	}
	return text, int(v), nil
}

// last reads what follows the empty chunk: trailers, and an empty line.
func (f *framed) last() error {
	var signed strings.Builder
	for range mostTrailers {
		line, err := f.line()
		if err != nil {
			return err
		}
		name, value, _ := strings.Cut(line, ":")
		switch name = strings.ToLower(name); {
		case line == "":
			f.out = append(f.out, "\r\n"...)
			return nil
		case !f.trailed:
			return &FramingError{"there are trailers, which x-amz-content-sha256 does not announce"}
		case name == trailerName && !isHash(strings.TrimSpace(value)):
			return &FramingError{"the signature of the trailers is invalid"}
		case name == trailerName:
			f.out = append(f.out, line[:len(line)-64]+f.chain.trailer([]byte(signed.String()))+"\r\n"...)
		default:
			signed.WriteString(name + ":" + strings.TrimSpace(value) + "\n")
			f.out = append(f.out, line+"\r\n"...)
		}
	}
	return &FramingError{fmt.Sprintf("more than %d trailers", mostTrailers)}
}

func (f *framed) line() (string, error) {
	b, err := f.in.ReadSlice('\n')
	if err != nil {
		if errors.Is(err, bufio.ErrBufferFull) {
			return "", &FramingError{"a line is too long"}
		}
		return "", wrong("it is cut off", err)
	}
	line, ok := strings.CutSuffix(string(b), "\r\n")
	if !ok {
		return "", &FramingError{"a line does not end with CR LF"}
	}
	return line, nil
}

// wrong returns a FramingError if the body ended in the middle, otherwise the body's own error.
func wrong(what string, err error) error {
	if err == nil || err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF) {
		return &FramingError{what}
	}
	return err
}
