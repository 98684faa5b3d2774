package weir

import "github.com/seed1158cd35/weir/limit"

// enterRoom reports whether the call may wait. A call of low priority enters its waiting room before its first wait.
func (w *walk) enterRoom() bool {
	if w.inRoom || w.call.WaitingRoom == nil || w.by.priority(w.call) != limit.Low {
		return true
	}
	w.inRoom = w.call.WaitingRoom.Enter()
	return w.inRoom
}

// leaveRoom leaves the waiting room if the call has entered it.
func (w *walk) leaveRoom() {
	if w.inRoom {
		w.inRoom = false
		w.call.WaitingRoom.Leave()
	}
}

// refuseCrowded refuses a call that would have to wait, because its waiting room is full.
func (w *walk) refuseCrowded() step {
	w.why = -1
	w.undo()
	return step{wait: soon, why: ConcurrencyLimited, crowded: true}
}
