package weir

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed1158cd35/weir/bucket"
)

// Who waits for a limit for as long as it has patience leaves when its turn comes, or soon
// after. Where more comes than the limit lets go, those at the head of a line are always
// about to leave, and nobody is served any more. So, unless a policy says how long calls may
// wait, those who leave say it: if half of the calls that waited within the last 10 s were left
// by their callers before they were answered, calls wait for half as long as those callers
// had patience, and are refused at once where their turn comes later. A minute after the last
// such sign they wait as long as before. A caller of Acquire waits for its turn alone: how
// long it does says nothing of the others, and it waits as long as it says.

// leavers are what an upstream knows of the patience of its callers. It is safe for
// concurrent use.
type leavers struct {
	longest atomic.Int64 // how long a call waits at most; 0 if that is not known
	until   atomic.Int64 // and until when that is so

	mu       sync.Mutex
	seconds  [10]waits                    // the latest, a ring
	patience [latestLeavers]time.Duration // of the latest who left, a ring
	n        int                          // of them, so far
}

// waits are the calls of a second that had waited for a turn.
type waits struct {
	second      time.Duration // which one
	calls, left int
}

const (
	fewestLeavers = 10
	latestLeavers = 32
	leaveIn       = 3 // seconds: callers that end together, as their program does, say nothing
	patienceFor   = time.Minute
)

// within is how long a call may wait that may wait for so long by the policy.
func (l *leavers) within(now, d time.Duration) time.Duration {
	if b := l.longest.Load(); b != 0 && int64(now) < l.until.Load() {
		return min(d, time.Duration(b))
	}
	return d
}

// note notes a call that has waited: after how long its caller left, 0 if it was answered.
func (l *leavers) note(now, left time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	second := now / time.Second
	w := &l.seconds[second%time.Duration(len(l.seconds))]
	if w.second != second {
		*w = waits{second: second}
	}
	if w.calls++; left == 0 {
		return
	}
	w.left++
	l.patience[l.n%latestLeavers] = left
	if l.n++; !l.leave(second) {
		return
	}
	latest := slices.Clone(l.patience[:min(l.n, latestLeavers)])
	slices.Sort(latest)
	l.longest.Store(int64(latest[len(latest)/2] / 2))
	l.until.Store(int64(now + patienceFor))
}

// leave reports whether half of those who waited left.
func (l *leavers) leave(second time.Duration) bool {
	calls, left, in := 0, 0, 0
	for _, w := range l.seconds {
		if second-w.second >= time.Duration(len(l.seconds)) {
			continue
		}
		calls, left = calls+w.calls, left+w.left
		if w.left > 0 {
			in++
		}
	}
	return in >= leaveIn && left >= fewestLeavers && 2*left >= calls
}

// patience is how long calls wait at most because of those who left; 0 if not because of them.
func (u *Upstream) patience(now time.Duration) time.Duration {
	if d := u.leavers.within(now, bucket.Never); u.live.Load().open && d != bucket.Never {
		return d
	}
	return 0
}

// left notes that the caller has left, after it had waited for a turn.
func (p *Permit) left(now time.Duration) {
	if p.queued && p.whole && p.attempt == 1 {
		p.u.leavers.note(now, max(now-p.asked, 1))
	}
	p.queued = false
}

// stayed notes how the attempt of a call ended that had waited for a turn.
func (p *Permit) stayed(now time.Duration, unheard bool) {
	switch {
	case !p.queued:
	case unheard:
		p.left(now)
	case p.whole && p.attempt == 1:
		p.u.leavers.note(now, 0)
	}
	p.queued = false
}
