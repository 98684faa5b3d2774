package dynamosqs

import (
	"context"
	"strconv"
	"strings"
	"time"
)

// A body in a separate item is stored before its record. Before both, a note with the body's version is stored for
// sweeps. If there is no record an hour later, the process has ended between the two writes, and the sweep removes the
// body.
const (
	bodyPrefix = "B#"
	wordPrefix = "O#"
	orphaned   = int64(time.Hour / time.Millisecond)
)

// keepBody stores the note of a record's body, and then the body.
func (s *Store) keepBody(ctx context.Context, r *record) error {
	k, v := r.bodyKey(), str(nonce())
	word := key(wordPrefix+strings.TrimPrefix(k, bodyPrefix), 0)
	word["v"], word["w"], word["t"] = v, str(strconv.FormatInt(r.seq%watches, 10)), num(now()+orphaned)
	if _, err := s.put(ctx, word, "", nil); err != nil {
		return err
	}
	it := key(k, 0)
	it["body"], it["v"] = raw(r.body), v
	_, err := s.put(ctx, it, "", nil)
	return err
}

// orphan removes a body whose record was never stored, and its note. A body that was stored again under the same key
// has another version, and stays.
func (w *sweep) orphan(ctx context.Context, k string) error {
	word, err := w.s.item(ctx, k, 0)
	if err != nil || word == nil || number(word, "t") > now() {
		return err
	}
	rest := strings.TrimPrefix(k, wordPrefix)
	of, _, _ := strings.Cut(rest, "#")
	seq, err := strconv.ParseInt(of, 10, 64)
	if err != nil {
		return err
	}
	r, err := w.s.get(ctx, seq)
	if err != nil {
		return err
	}
	same := item{":v": word["v"]}
	if r == nil || !r.Large || r.bodyKey() != bodyPrefix+rest {
		if _, err := w.s.remove(ctx, bodyPrefix+rest, 0, "v = :v", same); err != nil {
			return err
		}
	}
	_, err = w.s.remove(ctx, k, 0, "v = :v", same)
	return err
}
