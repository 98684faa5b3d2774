package delivery

import "time"

// Held is what a worker found when it last checked its maintenance work. A nil field was not checked yet.
type Held struct {
	Owed   *Pile // deliveries whose callbacks could not be stored yet
	Bodies *Pile // bodies older than an hour whose deliveries are kept
}

// A Pile is the number, size and age of some objects.
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

// Held returns what the worker found last.
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
