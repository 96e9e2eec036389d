// Names for players who have not chosen one, such as QuietOtter4217.

const FIRST =
  'Amber Bold Brave Bright Brisk Calm Clever Copper Coral Cosy Crisp Curious Dapper Daring Dusty Eager Early Fair Fleet Fond Gentle Glad Golden Happy Hazel Honest Humble Icy Jolly Keen Kind Lively Loyal Lucky Mellow Merry Mighty Misty Nimble Noble Olive Patient Plucky Proud Quick Quiet Rapid Rosy Royal Rustic Scarlet Shy Silver Sleepy Sly Snowy Solar Steady Sunny Swift Tidy Velvet Warm Wise'.split(
    ' ',
  )
const SECOND =
  'Badger Bear Beaver Bison Bobcat Camel Cheetah Condor Cougar Crane Cricket Deer Dingo Dolphin Dove Eagle Elk Falcon Ferret Finch Fox Gecko Goose Hare Hawk Heron Ibex Jackal Jaguar Koala Lark Lemur Lion Llama Lynx Magpie Marmot Marten Mole Moose Newt Ocelot Orca Osprey Otter Owl Panda Parrot Pelican Penguin Puffin Quail Rabbit Raven Robin Salmon Seal Sparrow Stork Swan Tapir Tiger Toad Walrus'.split(
    ' ',
  )

/** Returns a name of at most 18 characters that is most likely nobody else's, one of 37 million: a guest is their name; random returns numbers from 0 to below 1. */
export function randomName(random: () => number = Math.random): string {
  const pick = (words: string[]) => words[Math.floor(random() * words.length)] ?? ''
  return pick(FIRST) + pick(SECOND) + String(1000 + Math.floor(random() * 9000))
}
