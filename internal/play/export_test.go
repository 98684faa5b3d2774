package play

// MostRunning is the usual bound of calls in progress.
const MostRunning = mostRunning

// BoundRunning sets another bound of the calls in progress.
func (r *Replay) BoundRunning(most int) { r.most = most }
