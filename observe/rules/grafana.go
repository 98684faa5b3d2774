package rules

import (
	"bytes"
	"encoding/json"
)

// schema is the version of the dashboard format. Grafana 10.4 to 13 read it, and convert it when they load it.
const schema = 39

type (
	object = map[string]any
	list   = []any
)

var source = object{"type": "prometheus", "uid": "${datasource}"}

// Grafana returns the dashboard.
func Grafana() []byte {
	var panels list
	id, y := 0, 0
	for _, r := range Rows() {
		id++
		panels = append(panels, object{"id": id, "type": "row", "title": r.Title, "collapsed": false, "panels": list{}, "gridPos": place(0, y, 24, 1)})
		y++
		x := 0
		for i := range r.Panels {
			p := &r.Panels[i]
			w, h := 8, 7
			if p.Wide {
				w = 24
			}
			if p.Kind == "stat" {
				w, h = 4, 4
			}
			if x+w > 24 {
				x, y = 0, y+h
			}
			id++
			panels = append(panels, p.object(id, place(x, y, w, h)))
			if x += w; x >= 24 {
				x, y = 0, y+h
			}
		}
		if x > 0 {
			y += 7
		}
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	_ = e.Encode(object{
		"uid": "weir", "title": "weir", "tags": []string{"weir"}, "schemaVersion": schema, "editable": true, "graphTooltip": 1, "refresh": "10s", "timezone": "browser",
		"time": object{"from": "now-1h", "to": "now"}, "panels": panels,
		"templating": object{"list": list{
			object{"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Prometheus"},
			object{"name": "job", "type": "query", "datasource": source, "query": "label_values(weir_build_info, job)", "refresh": 2, "includeAll": true, "multi": true, "label": "Job"},
			object{"name": "upstream", "type": "query", "datasource": source, "query": "label_values(weir_breakers, upstream)", "refresh": 2, "includeAll": true, "multi": true, "label": "Upstream"},
		}},
		"annotations": object{"list": list{
			object{"name": "Reloads", "datasource": source, "enable": true, "iconColor": "blue", "expr": "changes(weir_config_reload_success_timestamp_seconds[1m]) > 0", "titleFormat": "configuration read"},
		}},
	}) // encoding maps of strings and numbers cannot fail
	return b.Bytes()
}

func place(x, y, w, h int) object { return object{"x": x, "y": y, "w": w, "h": h} }

func (p *Panel) object(id int, at object) object {
	var targets list
	for i, l := range p.Lines {
		t := object{"refId": string(rune('A' + i)), "datasource": source, "expr": l.Expr, "legendFormat": l.Legend, "range": p.Kind != "table", "instant": p.Kind == "table"}
		if p.Kind == "table" {
			t["format"] = "table"
		}
		targets = append(targets, t)
	}
	defaults := object{"unit": p.Unit}
	if p.Stack {
		defaults["custom"] = object{"stacking": object{"mode": "normal", "group": "A"}, "fillOpacity": 30}
	}
	if p.Kind == "state-timeline" || p.Title == "Breakers that are not closed" {
		defaults["color"] = object{"mode": "thresholds"}
		defaults["thresholds"] = object{"mode": "absolute", "steps": list{object{"color": "blue", "value": nil}, object{"color": "orange", "value": 1}}}
	}
	return object{
		"id": id, "type": p.Kind, "title": p.Title, "description": p.Text, "datasource": source, "gridPos": at, "targets": targets,
		"fieldConfig": object{"defaults": defaults, "overrides": list{}}, "options": object{},
	}
}
