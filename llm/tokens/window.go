package tokens

import "slices"

// A window has the last numbers of a series, in order of arrival and sorted. Its median and upper quantile change little
// with any single number.
type window struct {
	last   []int32 // in order of arrival, starting at next
	sorted []int32
	next   int
}

// add appends a number. It replaces the oldest one if there are size numbers.
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

func (w *window) median() int32 {
	n := len(w.sorted)
	return int32((int64(w.sorted[(n-1)/2]) + int64(w.sorted[n/2])) / 2)
}

// high returns the number that nine of ten do not exceed, or the largest of fewer than ten.
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
