package delivery

import "time"

// Held is what a worker has found when it last looked at what it tidies up; nil is what it has not looked at yet.
type Held struct {
	Owed   *Pile // callbacks that could not be stored: their deliveries owe them still
	Bodies *Pile // that are older than an hour, and whose deliveries are kept
}

// A Pile says how much there is of something.
type Pile struct {
	N      int
	Bytes  int64
	Oldest time.Time // zero if there is none
}

func (p *Pile) add(bytes int64, since time.Time) {
	p.N++
	p.Bytes += bytes
	if p.Oldest.IsZero() || since.Before(p.Oldest) {
		p.Oldest = since
	}
}

// Held says what the worker has found.
func (w *Worker) Held() Held {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.held
}

func (w *Worker) found(change func(*Held)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change(&w.held)
}
