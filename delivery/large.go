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

// A Blob is a body of more than MaxBody, which stands beside its record; the zero Blob is none.
type Blob struct {
	Name string // of the delivery's ID and the body's hash
	Size int64
	Sum  [sha256.Size]byte
}

// String is how a record names it; "" for none.
func (b Blob) String() string {
	if b.Name == "" {
		return ""
	}
	return fmt.Sprintf("%d %x %s", b.Size, b.Sum, b.Name)
}

// ParseBlob reads what String writes.
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

// named is the blob's name for a delivery: the same for the same delivery and body.
func (b Blob) named(id string) Blob {
	b.Name = base64.RawURLEncoding.EncodeToString([]byte(id)) + "." + hex.EncodeToString(b.Sum[:8])
	return b
}

// ownerOf is the ID of the delivery of which a blob has its name; "" for what is no such name.
func ownerOf(name string) string {
	id, sum, _ := strings.Cut(name, ".")
	b, err := base64.RawURLEncoding.DecodeString(id)
	if _, bad := hex.DecodeString(sum); err != nil || bad != nil || len(sum) != 16 {
		return ""
	}
	return string(b)
}

// Bodies keep what is too large for records. Files are such. They are safe for concurrent use.
type Bodies interface {
	// Gather makes an empty file, in which a body is written before it is put; whoever made it removes it.
	Gather() (*os.File, error)

	// Put keeps what was gathered in a file, which may go by it. It is stored durably when Put returns.
	Put(ctx context.Context, name string, from *os.File) error

	// Open reads a body from its beginning. ErrNoBody means that it is not there any more, or not as it was: nobody gets a part of it.
	Open(ctx context.Context, b Blob) (io.ReadSeekCloser, error)

	// Rename gives a body another name. Remove removes one; that it is not there is no error.
	Rename(ctx context.Context, from, to string) error
	Remove(ctx context.Context, name string) error

	// List names bodies that were put before an instant, in order, those after a name.
	List(ctx context.Context, after string, before time.Time, most int) ([]string, error)
}

// ErrNoBody means that a body is not stored as it was. It is exported for Bodies of a program's own.
var ErrNoBody = errors.New("its stored body has changed")

// A MeantError says under which ID a request is to be stored: its key has promised it to somebody who has not stored it yet. Its
// body is to have the name of that.
type MeantError struct{ ID string }

func (e *MeantError) Error() string { return "the key names the delivery " + e.ID }

// longestLarge bounds the ID of a delivery with a large body, of which that has its name.
const longestLarge = 128

// Keep puts a body of more than MaxBody beside the record that the request will be: Accept stores that. It reads no more than a
// number of bytes and the worker's MaxBody, and holds a piece at a time. Whoever has had a body kept calls Accept.
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

// hearing tells what its reader fails with from what its writer does.
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

// A BodyError says why a body could not be read.
type BodyError struct{ Err error }

func (e *BodyError) Error() string { return "body: " + e.Err.Error() }
func (e *BodyError) Unwrap() error { return e.Err }

// A TooLargeError means that a body is larger than what is kept.
type TooLargeError struct{ Most int64 }

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("the body is larger than %d bytes, the maximum for later delivery", e.Most)
}

// A keeping is a body whose record is about to be stored.
type keeping struct {
	n    int  // by how many
	mine bool // nobody else knows its delivery's ID
}

// storing counts who is about to store the record of a body.
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

// acceptLarge stores the record of a request whose body was kept. A body that no record names is removed, at once or by a sweep.
func (w *Worker) acceptLarge(ctx context.Context, r *Request, accept func(context.Context, *Request) (Delivery, bool, error)) (Delivery, bool, error) {
	was := r.Large
	mine := w.stored(was.Name).mine
	defer w.storing(was.Name, -1, mine)
	d, fresh, err := accept(ctx, r)
	if meant, ok := errors.AsType[*MeantError](err); ok {
		again := *r // the caller's is known by its own ID
		again.ID, again.Large = meant.ID, was.named(meant.ID)
		w.storing(again.Large.Name, 1, false)
		defer w.storing(again.Large.Name, -1, false)
		if err = w.Bodies.Rename(ctx, was.Name, again.Large.Name); err == nil {
			d, fresh, err = accept(ctx, &again)
		}
		return d, fresh, err
	}
	if mine && !errors.Is(err, ErrUncertain) && (err != nil || d.ID != r.ID) {
		_ = w.Bodies.Remove(context.WithoutCancel(ctx), was.Name) // or a sweep does
	}
	return d, fresh, err
}

const (
	orphaned    = time.Hour        // how old a body is before anybody asks for its record
	mostTidied  = 500              // bodies that are looked at together
	tidyingEach = 30 * time.Second // how often
)

// tidy removes bodies that no record names: of deliveries that were deleted, or never stored.
func (w *Worker) tidy(ctx context.Context) {
	if w.Bodies == nil || time.Since(w.tidied) < tidyingEach {
		return
	}
	w.tidied = time.Now()
	names, err := w.Bodies.List(ctx, w.tidiedTo, time.Now().Add(-orphaned), mostTidied)
	if err != nil {
		w.failed(ctx, "look for bodies", "", err)
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
	if owner == "" || w.stored(name).n > 0 { // it is somebody else's, or is just being stored
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

// A letter is the body of an attempt, which is opened right before that is sent.
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

// Len is its whole length: who asks means to send it from its beginning.
func (l *letter) Len() int { return int(l.of.Size) }

// SHA256 is the hash of the whole, for what is signed before it is read.
func (l *letter) SHA256() [sha256.Size]byte { return l.of.Sum }

// Close leaves it open until the attempt has ended.
func (l *letter) Close() error { return nil }

func (l *letter) end() {
	if l.from != nil {
		_ = l.from.Close()
	}
}

type letterKey struct{}

// BodyOf is the body of the delivery that is sent with a context, if it is a large one, and nil otherwise. It can be read once launch
// was called. It is exported for Senders of a program's own.
func BodyOf(ctx context.Context) io.ReadCloser {
	if l, ok := ctx.Value(letterKey{}).(*letter); ok {
		return l
	}
	return nil
}

// opens opens a large body, whole, before anything of it is sent.
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

// bodyAgain is when a body is asked for again that cannot be had now.
const bodyAgain = 10 * time.Second

// unsent is the end of a claim by which nothing was sent.
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
