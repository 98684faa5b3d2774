package delivery

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"
)

// A Blob refers to a body of more than MaxBody bytes, which is stored outside its record. The zero Blob means none.
type Blob struct {
	Name string // derived from the delivery's ID and the body's hash
	Size int64
	Sum  [sha256.Size]byte
}

// String returns the form that is stored in a record. It is empty for the zero Blob.
func (b Blob) String() string {
	if b.Name == "" {
		return ""
	}
	return fmt.Sprintf("%d %x %s", b.Size, b.Sum, b.Name)
}

// ParseBlob parses the result of String.
func ParseBlob(text string) (b Blob, err error) {
	if text == "" {
		return b, nil
	}
	parts := strings.SplitN(text, " ", 3)
	if len(parts) == 3 {
		sum, bad := hex.DecodeString(parts[1])
		b.Size, err = strconv.ParseInt(parts[0], 10, 64)
		if b.Name = parts[2]; err == nil && bad == nil && copy(b.Sum[:], sum) == len(b.Sum) && b.Size > 0 && b.Name != "" {
			return b, nil
		}
	}
	return Blob{}, errors.New("its stored body cannot be read")
}

// named returns the blob with its name for a delivery. The name depends only on the delivery's ID and the body.
func (b Blob) named(id string) Blob {
	b.Name = base64.RawURLEncoding.EncodeToString([]byte(id)) + "." + hex.EncodeToString(b.Sum[:8])
	return b
}

// ownerOf returns the ID of the delivery that a blob's name contains. It is empty if the name is not a blob's.
func ownerOf(name string) string {
	id, sum, _ := strings.Cut(name, ".")
	b, err := base64.RawURLEncoding.DecodeString(id)
	if _, bad := hex.DecodeString(sum); err != nil || bad != nil || len(sum) != 16 {
		return ""
	}
	return string(b)
}

// Bodies stores bodies that are too large for records. Files implements it. It is safe for concurrent use.
type Bodies interface {
	// Gather creates an empty file for a body that will be put. The caller removes it.
	Gather() (*os.File, error)

	// Put stores the contents of a gathered file durably. It may move the file.
	Put(ctx context.Context, name string, from *os.File) error

	// Open opens a body for reading. ErrNoBody means that it is missing or has changed. A caller never gets a partial
	// body.
	Open(ctx context.Context, b Blob) (io.ReadSeekCloser, error)

	// Rename gives a body another name. Remove removes a body. A missing body is not an error.
	Rename(ctx context.Context, from, to string) error
	Remove(ctx context.Context, name string) error

	// List returns the names of bodies that were put before a time, sorted, beginning after a name.
	List(ctx context.Context, after string, before time.Time, most int) ([]string, error)
}

// ErrNoBody means that a stored body is missing or has changed. It is exported for other implementations of Bodies.
var ErrNoBody = errors.New("its stored body has changed")

// A MeantError contains the ID under which a request must be stored, because its key was reserved for that ID by an
// accept that has not stored it yet. The name of the body must match this ID.
type MeantError struct{ ID string }

func (e *MeantError) Error() string { return "the key names the delivery " + e.ID }

// longestLarge is the longest ID of a delivery with a large body, whose name contains the ID.
const longestLarge = 128

// Keep stores a body of more than MaxBody before the record of its request, which Accept stores. It refuses a body of
// more than most bytes, or more than the worker's MaxBody. It does not hold the whole body in memory. After Keep, the
// caller must call Accept.
func (w *Worker) Keep(ctx context.Context, r *Request, body io.Reader, most int64) error {
	if w.Bodies == nil {
		return errBody
	}
	minted := r.ID == ""
	if minted {
		r.ID = NewID(time.Now())
	}
	if len(r.ID) > longestLarge {
		return &FieldError{"id", fmt.Sprintf("is longer than %d bytes", longestLarge)}
	}
	f, err := w.Bodies.Gather()
	if err != nil {
		return fmt.Errorf("keep a body: %w", err)
	}
	defer os.Remove(f.Name())
	defer f.Close()
	sum, from := sha256.New(), &hearing{from: body}
	most = min(most, max(w.MaxBody, MaxBody))
	n, err := io.Copy(io.MultiWriter(f, sum), io.LimitReader(from, most+1))
	switch {
	case from.err != nil:
		return &BodyError{from.err}
	case err != nil:
		return fmt.Errorf("keep a body: %w", err)
	case n > most:
		return &TooLargeError{most}
	}
	b := Blob{Size: n, Sum: [sha256.Size]byte(sum.Sum(nil))}.named(r.ID)
	w.storing(b.Name, 1, minted)
	if err := w.Bodies.Put(ctx, b.Name, f); err != nil {
		w.storing(b.Name, -1, minted)
		return fmt.Errorf("keep a body: %w", err)
	}
	r.Body, r.Large = nil, b
	return nil
}

// A hearing records the errors of its reader, to distinguish them from errors of the writer.
type hearing struct {
	from io.Reader
	err  error
}

func (h *hearing) Read(p []byte) (n int, err error) {
	if n, err = h.from.Read(p); err != nil && err != io.EOF {
		h.err = err
	}
	return n, err
}

// A BodyError is an error while the caller's body was read.
type BodyError struct{ Err error }

func (e *BodyError) Error() string { return "body: " + e.Err.Error() }
func (e *BodyError) Unwrap() error { return e.Err }

// A TooLargeError means that a body is too large to be stored.
type TooLargeError struct{ Most int64 }

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("the body is larger than %d bytes, the maximum for later delivery", e.Most)
}

// A keeping is a body whose record is about to be stored.
type keeping struct {
	n    int  // the number of callers that are about to store it
	mine bool // the delivery's ID was made here, so no other process uses it
}

// storing counts callers that are about to store the record of a body.
func (w *Worker) storing(name string, n int, mine bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stores == nil {
		w.stores = make(map[string]keeping)
	}
	k := w.stores[name]
	if k.n, k.mine = k.n+n, mine; k.n == 0 {
		delete(w.stores, name)
		return
	}
	w.stores[name] = k
}

func (w *Worker) stored(name string) keeping {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.stores[name]
}

// acceptLarge stores the record of a request whose body was kept. If no record refers to the body afterwards, it
// removes the body or leaves that to a sweep.
func (w *Worker) acceptLarge(ctx context.Context, r *Request, accept func(context.Context, *Request) (Delivery, bool, error)) (Delivery, bool, error) {
	was := r.Large
	mine := w.stored(was.Name).mine
	defer w.storing(was.Name, -1, mine)
	d, fresh, err := accept(ctx, r)
	if meant, ok := errors.AsType[*MeantError](err); ok {
		again := *r // a copy: the caller knows its request by the original ID
		again.ID, again.Large = meant.ID, was.named(meant.ID)
		w.storing(again.Large.Name, 1, false)
		defer w.storing(again.Large.Name, -1, false)
		if err = w.Bodies.Rename(ctx, was.Name, again.Large.Name); err == nil {
			d, fresh, err = accept(ctx, &again)
		}
		return d, fresh, err
	}
	if mine && !errors.Is(err, ErrUncertain) && (err != nil || d.ID != r.ID) {
		_ = w.Bodies.Remove(context.WithoutCancel(ctx), was.Name) // if it fails, a sweep removes it
	}
	return d, fresh, err
}

const (
	orphaned    = time.Hour        // the age at which a body without a record may be removed
	mostTidied  = 500              // bodies read at a time
	tidyingEach = 30 * time.Second // how often
)

// tidy removes bodies that no record refers to, because their deliveries were deleted or never stored.
func (w *Worker) tidy(ctx context.Context) {
	if w.Bodies == nil || time.Since(w.tidied) < tidyingEach {
		return
	}
	w.tidied = time.Now()
	names, err := w.Bodies.List(ctx, w.tidiedTo, time.Now().Add(-orphaned), mostTidied)
	if err != nil {
		w.failed(ctx, "find bodies", "", err)
		return
	}
	for _, name := range names {
		if err := w.tidyOne(ctx, name); err != nil {
			w.failed(ctx, "remove a body", "", err)
			return
		}
		w.tidiedTo = name
	}
	if len(names) < mostTidied {
		all := w.tidies
		w.found(func(h *Held) { h.Bodies = &all })
		w.tidiedTo, w.tidies = "", Pile{}
	}
}

func (w *Worker) tidyOne(ctx context.Context, name string) error {
	owner := ownerOf(name)
	if owner == "" || w.stored(name).n > 0 { // it is not a blob, or is just being stored
		return nil
	}
	d, err := w.Queue.Get(ctx, owner)
	switch {
	case errors.Is(err, ErrNotFound), err == nil && d.Large.Name != name:
		return w.Bodies.Remove(ctx, name)
	case err == nil:
		w.tidies.add(d.Large.Size, d.Accepted)
	}
	return err
}

// A letter is the body of an attempt. It is opened directly before the attempt is sent.
type letter struct {
	of   Blob
	from io.ReadSeekCloser
}

func (l *letter) Read(p []byte) (int, error) {
	if l.from == nil {
		return 0, ErrNoBody
	}
	return l.from.Read(p)
}

func (l *letter) Seek(offset int64, whence int) (int64, error) {
	if l.from == nil {
		return 0, ErrNoBody
	}
	return l.from.Seek(offset, whence)
}

// Len returns the full length, because a caller that needs the length sends the body from its beginning.
func (l *letter) Len() int { return int(l.of.Size) }

// SHA256 returns the hash of the complete body, for signatures that are made before it is read.
func (l *letter) SHA256() [sha256.Size]byte { return l.of.Sum }

// Close does nothing: the body stays open until the attempt has ended.
func (l *letter) Close() error { return nil }

func (l *letter) end() {
	if l.from != nil {
		_ = l.from.Close()
	}
}

type letterKey struct{}

// BodyOf returns the large body of the delivery that is sent with ctx, or nil if it has none. It can be read after
// launch was called. It is exported for other implementations of Sender.
func BodyOf(ctx context.Context) io.ReadCloser {
	if l, ok := ctx.Value(letterKey{}).(*letter); ok {
		return l
	}
	return nil
}

// opens opens a large body, which must be complete before any of it is sent.
func (f *flight) opens() error {
	if f.d.Large.Name == "" {
		return nil
	}
	f.bodyless = ErrNoBody
	if b := f.p.w.Bodies; b != nil && f.body != nil {
		f.body.from, f.bodyless = b.Open(f.p.w.hard, f.d.Large)
	}
	if f.bodyless != nil {
		return errBodyless
	}
	return nil
}

const errBodyless errNotSent = "its body cannot be read"

// bodyAgain is how long a delivery waits if its body cannot be read for now.
const bodyAgain = 10 * time.Second

// unsent returns the End of a claim whose attempt was not sent.
func (f *flight) unsent() End {
	switch {
	case errors.Is(f.bodyless, ErrNoBody):
		return End{To: Failed, Reason: Rejected, Detail: "it cannot be sent: " + f.bodyless.Error()}
	case f.bodyless != nil:
		f.p.w.failed(f.p.w.hard, "open a body", f.p.upstream, f.bodyless)
		return End{To: Queued, GiveBack: true, Due: time.Now().Add(bodyAgain)}
	}
	return End{To: Queued, GiveBack: true}
}
