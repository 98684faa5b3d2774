package sqlite

import (
	"database/sql/driver"

	"github.com/seed1158cd35/weir/delivery"
)

// A batch has what a transaction accepts until it is written, which is before the transaction ends: a row costs little more than half
// as much where one statement inserts many. The callers of a transaction wait at the same time, so there is no order among them: what
// is in a batch comes after the changes that others make meanwhile.
type batch struct {
	all   []*acceptance
	bytes int // of their bodies
	args  []any
	texts map[insertion]string
}

const (
	mostRows  = 16        // of a statement
	mostBytes = 256 << 10 // of bodies, which are copied for SQLite all at once
)

// has reports whether a delivery of the batch has the key or the ID by which another is looked for.
func (b *batch) has(a *acceptance) bool {
	for _, is := range b.all {
		if a.r.Key != "" && a.r.Key == is.r.Key || a.named && a.r.ID == is.r.ID {
			return true
		}
	}
	return false
}

func (b *batch) clear() {
	clear(b.all)
	b.all, b.bytes = b.all[:0], 0
}

// put has a delivery in the batch. One with an order key is written at once, as the next of the key looks for it.
func (w *writer) put(a *acceptance) error {
	w.batch.all = append(w.batch.all, a)
	w.batch.bytes += len(a.r.Body)
	if len(w.batch.all) < mostRows && w.batch.bytes < mostBytes && a.r.OrderKey == "" {
		return nil
	}
	return w.write()
}

// write writes the batch, as many of it in a statement as are of one shape.
func (w *writer) write() error {
	defer w.batch.clear()
	for all := w.batch.all; len(all) > 0; {
		n := 1
		for n < len(all) && all[n].shape == all[0].shape {
			n++
		}
		switch { // few sizes, as the statements stay prepared
		case n >= mostRows:
			n = mostRows
		case n >= 4:
			n = 4
		default:
			n = 1
		}
		if err := w.insert(all[:n]); err != nil {
			return err
		}
		all = all[n:]
	}
	return nil
}

// insert stores deliveries of one shape. Their numbers follow one another, as nobody else inserts.
func (w *writer) insert(all []*acceptance) error {
	r, err := w.into(&deliveries, all[0].shape.delivery, all)
	if err != nil {
		return err
	}
	last, err := r.LastInsertId()
	if err != nil {
		return err
	}
	for i, a := range all {
		a.is.Seq = last - int64(len(all)-1-i)
	}
	if _, err = w.into(&requests, all[0].shape.request, all); err != nil {
		return err
	}
	for _, a := range all {
		if a.is.Status == delivery.Processing {
			w.holds(&a.is, a.now)
		}
	}
	return nil
}

// An insertion is a statement that inserts.
type insertion struct {
	into  *table
	parts uint8
	rows  int
}

func (w *writer) into(t *table, parts uint8, all []*acceptance) (driver.Result, error) {
	is := insertion{t, parts, len(all)}
	text := w.batch.texts[is]
	if text == "" {
		text = t.insert(parts, len(all))
		w.batch.texts[is] = text
	}
	w.batch.args = t.values(w.batch.args[:0], parts, all)
	defer clear(w.batch.args)
	return w.does(text, w.batch.args)
}
