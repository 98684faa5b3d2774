package s3bodies

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/seed1158cd35/weir/delivery"
)

// Put stores a file. S3 compares what it gets with the hash, and has it on several disks when it answers.
func (b *Bodies) Put(ctx context.Context, name string, from *os.File) error {
	key, err := b.key(name)
	if err != nil {
		return err
	}
	if _, err := from.Seek(0, io.SeekStart); err != nil {
		return err
	}
	sum := sha256.New()
	n, err := io.Copy(sum, from)
	switch {
	case err != nil:
		return err
	case n > MaxBody:
		return fmt.Errorf("%d bytes exceed what S3 accepts in one request", n)
	}
	return b.do(ctx, &ask{method: http.MethodPut, key: key, body: from, size: n, hash: hex.EncodeToString(sum.Sum(nil))}, end)
}

// Open fetches a body into a file without a name, and gives that once its bytes are found to be those that were put.
func (b *Bodies) Open(ctx context.Context, of delivery.Blob) (io.ReadSeekCloser, error) {
	key, err := b.key(of.Name)
	if err != nil {
		return nil, err
	}
	f, err := b.Gather()
	if err != nil {
		return nil, err
	}
	err = b.do(ctx, &ask{method: http.MethodGet, key: key, size: of.Size}, func(resp *http.Response) error { return fetch(f, of, resp) })
	if e, ok := errors.AsType[*answerError](err); ok && e.Code == "NoSuchKey" {
		err = fmt.Errorf("%w: its object is missing", delivery.ErrNoBody)
	}
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		return nil, errors.Join(err, (&passed{f}).Close())
	}
	return &passed{f}, nil
}

// fetch writes an answer into a file, from its beginning.
func fetch(f *os.File, of delivery.Blob, resp *http.Response) error {
	_, err := f.Seek(0, io.SeekStart)
	if err == nil {
		err = f.Truncate(0)
	}
	if err != nil {
		return &localError{err}
	}
	sum, from := sha256.New(), &reading{from: resp.Body}
	n, err := io.Copy(io.MultiWriter(f, sum), io.LimitReader(from, of.Size+1))
	switch {
	case from.err != nil:
		return from.err
	case err != nil:
		return &localError{err}
	case n != of.Size || [sha256.Size]byte(sum.Sum(nil)) != of.Sum:
		return other(n, of, resp)
	}
	return nil
}

// other is for bytes that were not put. It may be what stands in between that answers so, or an end that nobody saw: the object is
// asked for again, and is only taken for damaged where it is S3 that answers.
func other(n int64, of delivery.Blob, resp *http.Response) error {
	if resp.Header.Get("X-Amz-Request-Id") == "" {
		return fmt.Errorf("the server that responded with 200 is not S3 (%d bytes of %d)", n, of.Size)
	}
	return fmt.Errorf("%w: its object has changed (%d of %d bytes)", delivery.ErrNoBody, n, of.Size)
}

// reading tells what its reader fails with from what its writer does.
type reading struct {
	from io.Reader
	err  error
}

func (r *reading) Read(p []byte) (n int, err error) {
	if n, err = r.from.Read(p); err != nil && err != io.EOF {
		r.err = err
	}
	return n, err
}

// passed is a file through which a body passes.
type passed struct{ *os.File }

func (p *passed) Close() error {
	err := p.File.Close()
	_ = os.Remove(p.Name()) // where it still has a name
	return err
}

// copying is how long S3 may take for a copy of the largest body.
const copying = 5 * time.Minute

// Rename gives a body another name: a copy, and then the old one is removed.
func (b *Bodies) Rename(ctx context.Context, from, to string) error {
	was, err := b.key(from)
	if err != nil {
		return err
	}
	is, err := b.key(to)
	if err != nil {
		return err
	}
	source := (&url.URL{Path: "/" + b.name + "/" + was}).EscapedPath()
	err = b.do(ctx, &ask{method: http.MethodPut, key: is, works: copying, header: map[string]string{"X-Amz-Copy-Source": source}}, copied)
	if err != nil {
		return err
	}
	return b.Remove(ctx, from)
}

// copied reads the answer to a copy, which begins before the copy is made: it says 200, and after that may say that it failed.
func copied(resp *http.Response) error {
	said := struct {
		XMLName       xml.Name
		Code, Message string
		ETag          string
	}{}
	if err := xml.NewDecoder(io.LimitReader(resp.Body, 64<<10)).Decode(&said); err != nil {
		return err
	}
	if said.XMLName.Local == "Error" || said.ETag == "" {
		return &answerError{Status: http.StatusInternalServerError, Code: said.Code, Message: said.Message}
	}
	return end(resp)
}

// Remove removes a body.
func (b *Bodies) Remove(ctx context.Context, name string) error {
	key, err := b.key(name)
	if err != nil {
		return err
	}
	err = b.do(ctx, &ask{method: http.MethodDelete, key: key}, end)
	if e, ok := errors.AsType[*answerError](err); ok && e.Code == "NoSuchKey" { // AWS says 204, others may say this
		return nil
	}
	return err
}

// A page is a part of a list.
type page struct {
	IsTruncated bool
	Contents    []struct {
		Key          string
		LastModified time.Time
	}
}

const mostOfPage = 1000

// List names bodies that are older than an instant, in order. How old they are S3's clock says.
func (b *Bodies) List(ctx context.Context, after string, before time.Time, most int) (names []string, err error) {
	old := time.Since(before)
	for start := b.prefix + after; len(names) < most; {
		p, now, err := b.page(ctx, start)
		if err != nil {
			return names, err
		}
		for _, o := range p.Contents {
			start = o.Key
			name := strings.TrimPrefix(o.Key, b.prefix)
			if _, bad := b.key(name); bad == nil && now.Sub(o.LastModified) > old && len(names) < most {
				names = append(names, name)
			}
		}
		if !p.IsTruncated || len(p.Contents) == 0 {
			break
		}
	}
	return names, nil
}

// page asks for the keys after one, and for S3's time.
func (b *Bodies) page(ctx context.Context, after string) (p page, now time.Time, err error) {
	query := url.Values{"list-type": {"2"}, "prefix": {b.prefix}, "max-keys": {strconv.Itoa(mostOfPage)}}
	if after != "" {
		query.Set("start-after", after)
	}
	err = b.do(ctx, &ask{method: http.MethodGet, query: query}, func(resp *http.Response) error {
		if at, bad := http.ParseTime(resp.Header.Get("Date")); bad == nil {
			now = at
		} else {
			now = time.Now()
		}
		p = page{}
		return xml.NewDecoder(io.LimitReader(resp.Body, mostSaid)).Decode(&p)
	})
	return p, now, err
}
