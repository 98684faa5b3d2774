package tokens

import "slices"

// A window is the last numbers of a series, also in order. It answers for the middle
// and the upper end of them, which no single number can move far.
type window struct {
	last   []int32 // in order of arrival, from next on
	sorted []int32
	next   int
}

// add puts a number in place of the oldest once there are size of them.
func (w *window) add(n int32, size int) {
	if len(w.last) < size {
		w.last = append(w.last, n)
	} else {
		at, _ := slices.BinarySearch(w.sorted, w.last[w.next])
		w.sorted = slices.Delete(w.sorted, at, at+1)
		w.last[w.next] = n
		w.next = (w.next + 1) % size
	}
	at, _ := slices.BinarySearch(w.sorted, n)
	w.sorted = slices.Insert(w.sorted, at, n)
}

// median is the middle, or between the two that are.
func (w *window) median() int32 {
	n := len(w.sorted)
	return int32((int64(w.sorted[(n-1)/2]) + int64(w.sorted[n/2])) / 2)
}

// high is the number that nine of ten do not exceed; with fewer than ten, the highest.
func (w *window) high() int32 {
	n := len(w.sorted)
	return w.sorted[min((9*(n+1)+9)/10, n)-1]
}

func (w *window) mean() int64 {
	var sum int64
	for _, n := range w.last {
		sum += int64(n)
	}
	return sum / int64(max(len(w.last), 1))
}
