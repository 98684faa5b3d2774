package jobs

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"
)

// Handler returns a handler with which programs in any language start jobs under the throttle:
//
//	GET    /        returns the number of jobs without waiting
//	POST   /        waits for a slot, at most Options.Timeout: 201 {"slot": "...", "currentJobs": 17, "waitTime": 4.2},
//	                the earlier jobs and the seconds waited; {"waitMs": 0} does not wait
//	PUT    /{slot}  {"job": "id"} reports the job that was started
//	DELETE /{slot}  reports that no job was started
//
// If no slot is free in time, the response is 429 with JOB_CAPACITY_TIMEOUT.
func (t *Throttle) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", t.serveLook)
	mux.HandleFunc("POST /{$}", t.serveAcquire)
	mux.HandleFunc("PUT /{slot}", t.serveStarted)
	mux.HandleFunc("DELETE /{slot}", t.serveRelease)
	return mux
}

const (
	mostBody    = 4 << 10
	longestWait = 24 * time.Hour
)

func (t *Throttle) serveLook(w http.ResponseWriter, r *http.Request) {
	s, err := t.Look(r.Context())
	if err != nil {
		refuse(w, http.StatusServiceUnavailable, "SERVICE_UNAVAILABLE", "the upstream did not return its jobs", nil)
		return
	}
	answer(w, http.StatusOK, s)
}

func (t *Throttle) serveAcquire(w http.ResponseWriter, r *http.Request) {
	var in struct {
		WaitMS *int64 `json:"waitMs"`
	}
	if !read(w, r, &in) {
		return
	}
	timeout := t.o.Timeout
	if in.WaitMS != nil {
		if *in.WaitMS < 0 {
			refuse(w, http.StatusBadRequest, "VALIDATION_ERROR", "waitMs: want milliseconds, from 0", nil)
			return
		}
		timeout = min(timeout, time.Duration(min(*in.WaitMS, int64(longestWait/time.Millisecond)))*time.Millisecond)
	}
	s, err := t.acquire(r.Context(), timeout)
	var full *CapacityError
	switch {
	case err == nil && s.Unasked:
		answer(w, http.StatusCreated, map[string]any{"slot": "", "unasked": true, "waitTime": s.Waited.Seconds(), "waitedSeconds": s.Waited.Seconds()})
	case err == nil:
		answer(w, http.StatusCreated, map[string]any{"slot": s.id, "currentJobs": s.State.Current, "waitTime": s.Waited.Seconds()})
	case errors.As(err, &full):
		t.refuseFull(w, full.State, full.Waited)
	}
}

func (t *Throttle) refuseFull(w http.ResponseWriter, s State, waited time.Duration) {
	w.Header().Set("Retry-After", strconv.FormatInt(int64((t.o.Poll+time.Second-1)/time.Second), 10))
	e := &CapacityError{s, waited}
	refuse(w, http.StatusTooManyRequests, Code, e.Error(), map[string]any{
		"currentJobs": s.Current, "maxJobs": s.Max, "threshold": s.Threshold, "availableSlots": s.Available, "slotsLeft": s.Left, "waitedSeconds": waited.Seconds(),
	})
}

func (t *Throttle) serveStarted(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Job string `json:"job"`
	}
	if !read(w, r, &in) {
		return
	}
	if in.Job == "" {
		refuse(w, http.StatusBadRequest, "VALIDATION_ERROR", "job: want the id of the job that was started", nil)
		return
	}
	t.changed(w, t.slots.change(r.Context(), r.PathValue("slot"), func(c *claim, now time.Time) bool {
		c.Job, c.Until = in.Job, now.Add(t.o.Hold).UnixMicro()
		return true
	}))
}

func (t *Throttle) serveRelease(w http.ResponseWriter, r *http.Request) {
	t.changed(w, t.slots.change(r.Context(), r.PathValue("slot"), func(*claim, time.Time) bool { return false }))
}

func (t *Throttle) changed(w http.ResponseWriter, found bool) {
	if !found {
		refuse(w, http.StatusNotFound, "NOT_FOUND", "unknown slot: it was returned, its job is listed, or it has expired", nil)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

func read(w http.ResponseWriter, r *http.Request, to any) bool {
	b, err := io.ReadAll(http.MaxBytesReader(w, r.Body, mostBody))
	if err == nil && len(b) > 0 {
		err = json.Unmarshal(b, to)
	}
	if err != nil {
		refuse(w, http.StatusBadRequest, "VALIDATION_ERROR", "the body is not the expected JSON, or larger than 4 KiB", nil)
	}
	return err == nil
}

func refuse(w http.ResponseWriter, status int, code, message string, details map[string]any) {
	answer(w, status, map[string]any{"error": map[string]any{"code": code, "message": message, "details": details}})
}

func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}
