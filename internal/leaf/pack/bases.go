package pack

import "unsafe"

// base is a record that others may be compressed against. It has no copy of its own: its bytes are
// those of the record, and stay after the record is dropped for as long as another needs them.
type base struct {
	ref     Ref
	group   uint64
	uses    uint32 // records against it, and itself until it is dropped
	dropped bool
	// poor is how many of the newest records against it are not alike, and patience how many that
	// may be.
	poor, patience uint8
}

// use counts a record against the base.
func (b *base) use(poor bool) {
	b.uses++
	if !poor {
		b.poor, b.patience = 0, rules.minPatience
	} else if b.poor < rules.maxPatience {
		b.poor++
	}
}

// bases are the bases of a pack.
type bases struct {
	list   []base // by number; 0 is none
	unused []uint32
	groups map[uint64]uint32 // the newest base of a group
	latest uint32
	bytes  int // payloads of all bases
}

// create returns a new base of the group, the newest one.
func (s *bases) create(group uint64, patience uint8) (id uint32) {
	if last := len(s.unused) - 1; last >= 0 {
		id, s.unused = s.unused[last], s.unused[:last]
	} else {
		if len(s.list) == 0 {
			s.list, s.groups = make([]base, 1, 2), map[uint64]uint32{}
		}
		id = uint32(len(s.list))
		s.list = append(s.list, base{})
	}
	s.list[id] = base{group: group, patience: patience}
	s.groups[group] = id
	s.latest = id
	return id
}

func (s *bases) free(id uint32) {
	if group := s.list[id].group; s.groups[group] == id {
		delete(s.groups, group)
	}
	if s.latest == id {
		s.latest = 0
	}
	s.list[id] = base{}
	s.unused = append(s.unused, id)
}

// groupBytes is about what an entry of the map takes.
const groupBytes = 24

func (s *bases) sizeBytes() int64 {
	return int64(cap(s.list)*int(unsafe.Sizeof(base{})) + 4*cap(s.unused) + groupBytes*len(s.groups))
}
