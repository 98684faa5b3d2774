package dynamosqs

import (
	"context"
	"strconv"
	"strings"
	"time"
)

// A body that stands in an item of its own is stored before its record. Before both a word is left among what sweeps look at, with the
// body's version: where there is no record for it an hour later, the process ended between the two, and the body goes.
const (
	bodyPrefix = "B#"
	wordPrefix = "O#"
	orphaned   = int64(time.Hour / time.Millisecond)
)

// keepBody stores the body of a record, and before it the word of it.
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

// orphan removes a body whose record was never stored, and the word of it. A body that was stored once more since, under the same key,
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
