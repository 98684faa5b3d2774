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

// Put stores a file. S3 verifies the hash, and responds after it has stored the object on several disks.
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

// Open downloads a body to a file without a name. It returns the file after it has verified the size and the hash.
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

// fetch writes a response to a file, from the start of the file.
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

// other returns the error for unexpected bytes. A proxy may have sent them, or the response may have been cut without
// an error. So the object counts as damaged only if the response is from S3. Any other error is retried.
func other(n int64, of delivery.Blob, resp *http.Response) error {
	if resp.Header.Get("X-Amz-Request-Id") == "" {
		return fmt.Errorf("the server that responded with 200 is not S3 (%d bytes of %d)", n, of.Size)
	}
	return fmt.Errorf("%w: its object has changed (%d of %d bytes)", delivery.ErrNoBody, n, of.Size)
}

// A reading records the errors of its reader, to distinguish them from errors of the writer.
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

// A passed is a temporary file for a body.
type passed struct{ *os.File }

func (p *passed) Close() error {
	err := p.File.Close()
	_ = os.Remove(p.Name()) // if it still has a name
	return err
}

// copying is how long S3 may take to copy the largest body.
const copying = 5 * time.Minute

// Rename copies a body to another name and removes the old one.
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

// copied reads the response to a copy. S3 sends the status 200 before it has made the copy, so the response may contain
// an error.
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
	if e, ok := errors.AsType[*answerError](err); ok && e.Code == "NoSuchKey" { // AWS responds 204, but other servers may return this error
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

// List returns the names of bodies that are older than before, sorted. Their age is by S3's clock.
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

// page requests the keys after a key. It also returns S3's time.
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
