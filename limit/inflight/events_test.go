package inflight

// An event of the simulation, in seconds since its start.
type event struct {
	at   float64
	kind uint8
	a, b int32
}

// Kinds of events.
const (
	evArrive  = iota // a new caller
	evAgain          // a caller's own retry (a = user)
	evLeave          // a caller's patience ends (a = call)
	evDone           // a worker ends (a = job)
	evShare          // processor sharing's next end (a = generation)
	evTimeout        // the sidecar's time to headers ends (a, b = call, generation)
	evRetry          // the sidecar's retry (a = call)
	evQueue          // the wait in the sidecar ends (a = call)
	evFree           // a stream's worker is free (a = job)
	evPump           // a sidecar checks its queue (a = sidecar)
)

type heap []event

func (h *heap) push(e event) {
	*h = append(*h, e)
	s := *h
	for i := len(s) - 1; i > 0; {
		p := (i - 1) / 2
		if s[p].at <= s[i].at {
			break
		}
		s[p], s[i] = s[i], s[p]
		i = p
	}
}

func (h *heap) pop() event {
	s := *h
	top := s[0]
	n := len(s) - 1
	s[0] = s[n]
	s = s[:n]
	*h = s
	for i := 0; ; {
		c := 2*i + 1
		if c >= n {
			break
		}
		if c+1 < n && s[c+1].at < s[c].at {
			c++
		}
		if s[i].at <= s[c].at {
			break
		}
		s[i], s[c] = s[c], s[i]
		i = c
	}
	return top
}
