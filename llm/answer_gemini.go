package llm

// content returns a complete Gemini response.
func (s *said) content() object { return s.contentOf(s.text, true) }

func (s *said) contentOf(text string, last bool) object {
	candidates := list{}
	for i := range s.choices() {
		c := object{"content", object{"parts", list{object{"text", text}}, "role", "model"}}
		if last {
			c = append(c, "finishReason", "STOP")
		}
		candidates = append(candidates, append(c, "index", i))
	}
	return object{"candidates", candidates, "usageMetadata", s.contentUsage(), "modelVersion", s.by, "responseId", s.id}
}

func (s *said) contentUsage() object {
	o := object{"promptTokenCount", s.usage.Input, "candidatesTokenCount", s.usage.Output, "totalTokenCount", s.usage.Total()}
	if s.usage.CacheRead > 0 {
		o = append(o, "cachedContentTokenCount", s.usage.CacheRead)
	}
	return o
}

// contentEvents returns events with parts of the text. The last event has a finish reason.
func (s *said) contentEvents() (all []event) {
	texts := s.pieces()
	if len(texts) == 0 {
		texts = []string{""}
	}
	for i, text := range texts {
		all = append(all, event{data: s.contentOf(text, i == len(texts)-1)})
	}
	return all
}
