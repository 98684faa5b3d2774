package llm

import (
	"bytes"
	"cmp"
	"strings"
)

// media emits the media that a value contains, and the texts next to it.
func (w *walker) media(n uint32, kind MediaKind, detail string) {
	if w.d.kind(n) == kindString {
		w.emit(piece{what: isMedia, media: Media{Kind: kind, Bytes: w.payload(n), Detail: detail}})
		return
	}
	if mime := w.d.says(n, "mimeType", "mime_type", "media_type"); mime != "" {
		kind = mimeKind(mime)
	}
	detail = cmp.Or(w.d.says(n, "detail"), detail)
	typ := w.d.says(n, "type")
	for k := n + 1; k < w.d.nodes[n].next && !w.done; k = w.d.nodes[k+1].next {
		w.inMedia(k, kind, detail, typ)
	}
}

func (w *walker) inMedia(k uint32, kind MediaKind, detail, typ string) {
	v := k + 1
	switch string(w.d.text(k, nil)) {
	case "source", "s3Location":
		w.media(v, kind, detail)
	case "data", "bytes", "url", "uri", "fileUri", "file_uri", "file_data", "file_id", "fileId", "file_url":
		if typ == "text" {
			w.walkAny(v)
			return
		}
		w.media(v, kind, detail)
	case "text", "content", "title", "context":
		w.walkAny(v)
	}
}

// payload returns the number of bytes that a string holds in base64, or 0 if the string is a reference.
func (w *walker) payload(n uint32) int64 {
	v := &w.d.nodes[n]
	s := w.d.body[v.start:v.end]
	switch {
	case bytes.HasPrefix(s, []byte("data:")):
		i := bytes.IndexByte(s, ',')
		if i < 0 {
			return 0
		}
		s = s[i+1:]
	case w.reference(n) || string(w.d.text(n-1, nil)) == "file_id" || string(w.d.text(n-1, nil)) == "fileId":
		return 0
	}
	return int64(len(bytes.TrimRight(s, "="))) * 3 / 4
}

func mimeKind(mime string) MediaKind {
	switch family, _, _ := strings.Cut(mime, "/"); family {
	case "image", "audio", "video":
		return MediaKind(family)
	}
	return Document
}
