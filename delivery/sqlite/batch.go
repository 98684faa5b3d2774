package sqlite

import (
	"database/sql/driver"

	"github.com/seed1158cd35/weir/delivery"
)

// A batch contains the deliveries that a transaction has accepted but not written yet. One statement that inserts many
// rows takes little more than half the time per row. A batch is written before its transaction ends. Its rows may
// follow changes of other callers that came later: the callers of one transaction wait concurrently, so there is no
// order among them.
type batch struct {
	all   []*acceptance
	bytes int // of the bodies
	args  []any
	texts map[insertion]string
}

const (
	mostRows  = 16        // per statement
	mostBytes = 256 << 10 // of bodies, which SQLite copies all together
)

// has reports whether the batch contains a delivery with the key or the ID of a.
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

// put adds a delivery to the batch. One with an order key is written immediately, because the next one of its key reads
// it.
func (w *writer) put(a *acceptance) error {
	w.batch.all = append(w.batch.all, a)
	w.batch.bytes += len(a.r.Body)
	if len(w.batch.all) < mostRows && w.batch.bytes < mostBytes && a.r.OrderKey == "" {
		return nil
	}
	return w.write()
}

// write writes the batch. One statement writes deliveries of one shape.
func (w *writer) write() error {
	defer w.batch.clear()
	for all := w.batch.all; len(all) > 0; {
		n := 1
		for n < len(all) && all[n].shape == all[0].shape {
			n++
		}
		switch { // only these sizes, because prepared statements are kept
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

// insert stores deliveries of one shape. Their seqs are consecutive, because there is only one writer.
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

// An insertion identifies an INSERT statement.
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
