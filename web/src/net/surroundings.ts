// Asks the gateway who is near, and who plays in the world: one question at a time, and only while somebody looks at the answers.

import type { FromClient, NearbyList, PeopleList, Welcome } from './protocol'

const NEARBY_MS = 2000 // between two lists of players nearby
const PEOPLE_MS = 5000 // between two lists of everybody
const PATIENCE_MS = 8000 // a question that is not answered is repeated after that

export class Surroundings {
  /** The latest lists; null before the first. */
  nearby: NearbyList | null = null
  people: PeopleList | null = null
  supported = false
  private worldwide = false // the gateway answers who plays in the world
  private nearbyAt = -Infinity
  private peopleAt = -Infinity
  private asked = -Infinity // when the question under way was sent
  private waiting = false
  private all = false

  constructor(private readonly send: (message: FromClient) => void) {}

  /** Starts with a session. */
  begin(welcome: Welcome): void {
    this.supported = welcome.map === true
    this.worldwide = welcome.people === true
    this.waiting = false
    this.nearby = this.people = null
    this.nearbyAt = this.peopleAt = -Infinity
  }

  /** Asks the next question, if one is due; who plays in the world, too, if people is true. */
  look({ people }: { people: boolean }, now: number): void {
    this.all = people
    if (!this.supported || (this.waiting && now - this.asked < PATIENCE_MS)) return
    const due = this.next(now)
    if (!due) return
    this.waiting = true
    this.asked = now
    this.send({ type: due })
  }

  answer(message: NearbyList | PeopleList, now: number): void {
    this.waiting = false
    if (message.type === 'nearby') this.nearby = message
    else this.people = message
    this.look({ people: this.all }, now)
  }

  private next(now: number): 'nearby' | 'people' | null {
    if (now - this.nearbyAt >= NEARBY_MS) {
      this.nearbyAt = now
      return 'nearby'
    }
    if (!this.all || !this.worldwide || now - this.peopleAt < PEOPLE_MS) return null
    this.peopleAt = now
    return 'people'
  }
}
