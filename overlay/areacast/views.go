package areacast

// refresh purges players who were silent for too long, and moves the others to the view of their last position.
func (m *Machine) refresh() {
	for v := range m.views {
		m.views[v] = m.views[v][:0]
	}
	m.dormant = m.dormant[:0]
	ir2, vr2 := m.opt.Interaction*m.opt.Interaction, m.opt.Vision*m.opt.Vision
	for i := len(m.order) - 1; i >= 0; i-- { // drop moves the last contact into the place of the removed one
		c := m.order[i]
		switch silent := int32(m.now - c.receivedAt); {
		case silent > dropAfter:
			m.drop(c)
			continue
		case silent > forgetAfter:
			c.hops = 0
		}
		if c.view == viewNone || c.positionAge(m.now) > m.opt.RemoveAfter {
			c.view = viewNone
			if m.opt.RemindEvery > 0 {
				m.dormant = append(m.dormant, c)
			}
			continue
		}
		switch d2 := m.at.Dist2(c.last.At); {
		case d2 <= ir2:
			c.view = viewIR
		case d2 <= vr2:
			c.view = viewVR
		default:
			c.view = viewInf
		}
		m.views[c.view] = append(m.views[c.view], c)
	}
}
