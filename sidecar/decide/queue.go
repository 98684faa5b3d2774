package decide

// A queue is a heap of permits, ordered by expiry.
type queue []*held

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, k int) bool { return q[i].until.Before(q[k].until) }
func (q queue) Swap(i, k int) {
	q[i], q[k] = q[k], q[i]
	q[i].place, q[k].place = i, k
}

func (q *queue) Push(x any) {
	h := x.(*held)
	h.place = len(*q)
	*q = append(*q, h)
}

func (q *queue) Pop() any {
	last := len(*q) - 1
	h := (*q)[last]
	(*q)[last] = nil
	*q = (*q)[:last]
	return h
}
